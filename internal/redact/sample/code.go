package sample

import "strings"

// Code is at least size bytes of what stands in a repository: Go, Python,
// JavaScript, SQL, YAML and Markdown. Each seed gives other bytes.
func Code(seed uint64, size int) []byte {
	w := newWriter(seed)
	for w.Len() < size {
		w.snippet()
	}
	return []byte(w.String())
}

// snippet is one piece of one language.
func (w *writer) snippet() {
	switch w.r.IntN(10) {
	case 0, 1, 2:
		w.golang()
	case 3, 4:
		w.python()
	case 5, 6:
		w.script()
	case 7:
		w.sql()
	case 8:
		w.yaml()
	default:
		w.markdown()
	}
}

func (w *writer) golang() {
	typ, fn, v, arg := w.camel(), w.camel(), w.camel(), strings.ToLower(w.word())
	w.f("// %s %s\nfunc (%c *%s) %s(ctx context.Context, %s string, limit int) ([]%s, error) {\n", fn, w.sentence(), typ[0]|0x20, typ, fn, arg, v)
	w.f("\tif limit <= 0 || limit > %d {\n\t\treturn nil, fmt.Errorf(\"%s: limit %%d: %%w\", limit, err%s)\n\t}\n", 1+w.r.IntN(5000), w.name(" "), strings.ToUpper(fn[:1])+fn[1:])
	for range 1 + w.r.IntN(3) {
		a, b := w.camel(), w.camel()
		switch w.r.IntN(4) {
		case 0:
			w.f("\t%s, err := %c.%s.Query(ctx, `SELECT %s, %s FROM %s WHERE id = ? AND n < %d`, %s)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tdefer %s.Close()\n", a, typ[0]|0x20, b, w.name("_"), w.name("_"), w.name("_"), w.r.IntN(100), arg, a)
		case 1:
			w.f("\tfor i, %s := range %s[:min(len(%s), limit)] {\n\t\tif %s.%s != %q && i%%%d == 0 { // %s\n\t\t\tcontinue\n\t\t}\n\t\t%s = append(%s, %s{Name: %s.Name, Size: 0x%x})\n\t}\n", a, b, b, a, w.camel(), w.name("-"), 2+w.r.IntN(9), w.name(" "), v, v, w.camel(), a, w.r.IntN(1<<20))
		case 2:
			w.f("\t%s := time.Duration(%d) * time.Millisecond // %s\n\tselect {\n\tcase <-ctx.Done():\n\t\treturn nil, ctx.Err()\n\tcase <-time.After(%s):\n\t}\n", a, 10*w.r.IntN(500), w.name(" "), a)
		default:
			w.f("\t%s := map[string]int{%q: %d, %q: %d, %q: -1}\n\tslog.Debug(%q, \"count\", len(%s), \"took\", %s.Seconds())\n", a, w.name("_"), w.r.IntN(1000), w.name("_"), w.r.IntN(1000), w.name("_"), w.name(" "), a, b)
		}
	}
	w.f("\treturn %s, nil\n}\n\n", v)
}

func (w *writer) python() {
	fn, a, b := w.name("_"), w.name("_"), w.name("_")
	w.f("@dataclass(frozen=True)\nclass %s:\n    \"\"\"%s\n\n    %s\n    \"\"\"\n    %s: int = %d\n    %s: str | None = None\n\n", strings.ToUpper(w.camel()[:1])+w.camel(), w.sentence(), w.paragraph(), a, w.r.IntN(500), b)
	w.f("    def %s(self, %s: list[str], *, retries: int = %d) -> dict[str, float]:\n        # %s\n        total = sum(len(x) for x in %s if not x.startswith(\"%s\"))\n", fn, a, 1+w.r.IntN(9), w.sentence(), a, w.name("-"))
	w.f("        for attempt in range(retries):\n            try:\n                return {k: v / %d.%d for k, v in self.%s(total, attempt).items()}\n            except (ValueError, KeyError) as err:\n                logger.warning(\"%s %%s after %%d of %%d\", err, attempt, retries)\n                time.sleep(%.2f * 2 ** attempt)\n        raise RuntimeError(f\"%s {total!r}\")\n\n\n",
		1+w.r.IntN(9), w.r.IntN(10), w.name("_"), w.name(" "), w.r.Float64(), w.name(" "))
}

func (w *writer) script() {
	fn, a, b, c := w.camel(), w.camel(), w.camel(), w.camel()
	w.f("/** %s */\nexport async function %s({ %s, %s = %d }: %sOptions): Promise<%s[]> {\n  const %s = await fetch(`https://api.example.com/v%d/%s/${%s}?limit=${%s}&cursor=%d`, {\n    method: \"GET\",\n    headers: { Accept: \"application/json\", \"X-Request-Id\": crypto.randomUUID() },\n  });\n",
		w.sentence(), fn, a, b, w.r.IntN(90), fn, c, c, 1+w.r.IntN(4), w.name("/"), a, b, w.r.IntN(9000))
	w.f("  if (!%s.ok) throw new Error(`%s: ${%s.status}`); // %s\n  const rows = (await %s.json()).%s ?? [];\n  return rows.filter((row) => row.%s >= %d && row.kind !== '%s').map((row) => ({ ...row, at: new Date(row.at), width: %d.%dpx }));\n}\n\n",
		c, w.name(" "), c, w.sentence(), c, w.camel(), w.camel(), w.r.IntN(400), w.name("-"), w.r.IntN(90), w.r.IntN(10))
	w.f("export const %s = (props) => <div className=\"%s mt-%d text-sm\" style={{ color: \"#%s\" }}>{props.%s}</div>;\n\n", w.camel(), w.name("-"), w.r.IntN(12), w.of(hexDigits, 6), w.camel())
}

func (w *writer) sql() {
	t := w.name("_")
	w.f("-- %s\nCREATE TABLE IF NOT EXISTS %s (\n    id BIGINT PRIMARY KEY,\n    %s VARCHAR(%d) NOT NULL DEFAULT '%s',\n    %s TIMESTAMPTZ NOT NULL DEFAULT now(),\n    CHECK (%s <> '' AND %s >= %d)\n);\n", w.sentence(), t, w.name("_"), 16*(1+w.r.IntN(16)), w.name("-"), w.name("_"), w.name("_"), w.name("_"), w.r.IntN(99))
	for range 2 + w.r.IntN(4) {
		w.f("INSERT INTO %s VALUES (%d, '%s', '%s', %.4f);\n", t, w.r.IntN(1_000_000), strings.ReplaceAll(w.sentence(), "'", "''"), w.stamp().Format("2006-01-02 15:04:05+00"), w.r.Float64()*1000)
	}
	w.WriteByte('\n')
}

func (w *writer) yaml() {
	n := strings.ToLower(w.word())
	w.f("# %s\nservices:\n  %s:\n    image: registry.example.com/%s:%d.%d.%d@sha256:%s\n    replicas: %d\n    ports: [\"%d:%d\"]\n    environment:\n      LOG_LEVEL: info\n      %s: \"%d\"\n    resources: {cpu: %dm, memory: %dMi}\n    command: [\"/bin/%s\", \"--listen\", \"0.0.0.0:%d\", \"--%s=%s\"]\n",
		w.sentence(), n, w.name("/"), w.r.IntN(9), w.r.IntN(30), w.r.IntN(30), w.of(hexDigits, 64), 1+w.r.IntN(9), 8000+w.r.IntN(999), 8000+w.r.IntN(999),
		strings.ToUpper(w.name("_")), w.r.IntN(9999), 100*(1+w.r.IntN(9)), 64*(1+w.r.IntN(16)), n, 8000+w.r.IntN(999), w.name("-"), w.name("-"))
	w.f("    volumes:\n      - %s:/var/lib/%s:ro\n    healthcheck: {interval: %ds, retries: %d}\n\n", w.name("-"), n, 1+w.r.IntN(60), 1+w.r.IntN(9))
}

func (w *writer) markdown() {
	w.f("## %s\n\n%s\n\n", w.name(" "), w.paragraph())
	for i := range 2 + w.r.IntN(4) {
		w.f("%d. %s See [%s](../%s#L%d).\n", i+1, w.sentence(), w.name(" "), w.path(), 1+w.r.IntN(800))
	}
	w.f("\n| %s | %s | %s |\n|---|---:|:--|\n", w.word(), w.word(), w.word())
	for range 2 + w.r.IntN(4) {
		w.f("| `%s` | %d,%03d | %s |\n", w.camel(), w.r.IntN(99), w.r.IntN(1000), w.sentence())
	}
	w.f("\n```sh\n$ go test -run %s -count=%d ./... | tee %s.log\nok  \texample.com/%s\t%.3fs\n```\n\n", w.camel(), 1+w.r.IntN(9), w.name("-"), w.name("/"), w.r.Float64()*30)
}
