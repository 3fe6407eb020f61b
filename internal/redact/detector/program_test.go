package detector

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// programMark begins the arguments that make the test binary a detector.
const programMark = "act-as-detector"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == programMark {
		runProgram(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sent is what the program reads.
type sent struct {
	ID   int64  `json:"id"`
	Text string `json:"text"`
}

// makeAnswer returns a proper answer: "Ann Lee" is a name, "Main St 1" an address, "red" a color.
func makeAnswer(s sent) string {
	list := []string{}
	for _, w := range [][2]string{{"Ann Lee", "name"}, {"Åsa Öberg", "name"}, {"Main St 1", "address"},
		{"red", "color"}} {
		for from := 0; ; {
			at := strings.Index(s.Text[from:], w[0])
			if at < 0 {
				break
			}
			list = append(list, fmt.Sprintf(`{"start":%d,"end":%d,"kind":%q,"score":0.9}`, from+at,
				from+at+len(w[0]), w[1]))
			from += at + len(w[0])
		}
	}
	return fmt.Sprintf(`{"id":%d,"findings":[%s]}`, s.ID, strings.Join(list, ","))
}

// always maps modes to what the program answers to every text but the first; %d is the id.
var always = map[string]string{
	"not-json":       `no findings for %d`,
	"two-objects":    `{"id":%d,"findings":[]}{}`,
	"no-id":          `{"findings":[],"n":%d}`,
	"no-findings":    `{"id":%d}`,
	"error":          `{"id":%d,"error":"model not loaded"}`,
	"cuts-character": `{"id":%d,"findings":[{"start":1,"end":3,"kind":"name"}]}`,
	"beyond-end":     `{"id":%d,"findings":[{"start":0,"end":999,"kind":"name"}]}`,
	"negative":       `{"id":%d,"findings":[{"start":-1,"end":3,"kind":"name"}]}`,
	"empty":          `{"id":%d,"findings":[{"start":2,"end":2,"kind":"name"}]}`,
	"no-end":         `{"id":%d,"findings":[{"start":2,"kind":"name"}]}`,
	"no-kind":        `{"id":%d,"findings":[{"start":0,"end":2}]}`,
	"text-as-kind":   `{"id":%d,"findings":[{"start":0,"end":2,"kind":"Ann Lee"}]}`,
	"long-kind":      `{"id":%d,"findings":[{"start":0,"end":2,"kind":"` + strings.Repeat("k", maxKind+1) + `"}]}`,
	"many-findings": `{"id":%d,"findings":[` + strings.TrimSuffix(strings.Repeat(
		`{"start":0,"end":2,"kind":"name"},`, maxFindings+1), ",") + `]}`,
	"long-line": `{"id":%d,"findings":[],"more":"` + strings.Repeat("x", maxAnswer) + `"}`,
}

// runProgram is the program. It answers the first text, which Start sends, in every mode but those that say otherwise.
func runProgram(mode string, args []string) {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	var held []string
	for n := 0; ; n++ {
		if mode == "deaf" && n == 1 {
			time.Sleep(time.Hour)
		}
		line, err := in.ReadSlice('\n')
		if err != nil {
			if mode == "stubborn" {
				time.Sleep(time.Hour)
			}
			return
		}
		var s sent
		if json.Unmarshal(line, &s) != nil {
			os.Exit(9)
		}
		if mode == "record" {
			f, _ := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			f.Write(line)
			f.Close()
		}
		say := makeAnswer(s)
		if n == 0 {
			say = answerFirst(mode, args, say)
		} else {
			say, held = answerNext(mode, args, s, say, held)
		}
		if say != "" {
			os.Stdout.WriteString(say + "\n")
		}
	}
}

// answerFirst returns the answer to the first text.
func answerFirst(mode string, args []string, say string) string {
	switch mode {
	case "exit":
		fmt.Fprint(os.Stderr, "cannot import a model")
		os.Exit(3)
	case "mute":
		return ""
	case "loading":
		time.Sleep(300 * time.Millisecond)
	case "environment":
		os.WriteFile(args[0], []byte(strings.Join(os.Environ(), "\n")), 0o600)
	case "with-child":
		c := exec.Command("sleep", "1000")
		if c.Start() != nil {
			os.Exit(9)
		}
		os.WriteFile(args[0], []byte(strconv.Itoa(c.Process.Pid)), 0o600)
	}
	return say
}

// answerNext returns the answer to a later text.
func answerNext(mode string, args []string, s sent, say string, held []string) (string, []string) {
	if form := always[mode]; form != "" {
		return fmt.Sprintf(form, s.ID), nil
	}
	switch mode {
	case "reverse": // three answers together
		if held = append([]string{say}, held...); len(held) < 3 {
			return "", held
		}
		return strings.Join(held, "\n"), nil
	case "late":
		if strings.Contains(s.Text, "slow") {
			time.Sleep(200 * time.Millisecond)
		}
	case "hang":
		time.Sleep(time.Hour)
	case "die":
		if strings.Contains(s.Text, "die") {
			os.Exit(3)
		}
	case "twice":
		return say + "\n" + say, nil
	case "other-id":
		return fmt.Sprintf(`{"id":%d,"findings":[]}`, s.ID+1000), nil
	case "endless":
		for {
			os.Stdout.Write(bytes.Repeat([]byte{'x'}, 64<<10))
		}
	case "noisy":
		for range 100 {
			os.Stderr.Write(bytes.Repeat([]byte("Ann Lee "), 1<<10))
		}
	case "closes-output":
		os.Stdout.Close()
		time.Sleep(time.Hour)
	}
	return say, nil
}
