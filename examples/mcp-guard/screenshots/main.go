// Command screenshots runs the example with the pages served, lets its agent
// ask for what a person must decide, decides it in a headless Chromium, and
// writes what is seen on the way to a directory, as PNG.
//
//	go run ./examples/mcp-guard/screenshots [-holdfast BINARY] DIR
//
// It needs Go, npx, chromium and chromedriver (Debian: chromium
// chromium-driver), and runs in the module's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	holdfast := flag.String("holdfast", "", "the binary; built if absent")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: screenshots [-holdfast BINARY] DIR")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *holdfast, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, holdfast, dir string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s, err := openScene(ctx, ".", holdfast)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b, err := openBrowser(ctx, s.path("home"))
	if err != nil {
		return err
	}
	defer b.close()
	return (&tour{s: s, b: b, dir: dir}).walk(ctx)
}

// tour is a walk through the pages with a camera.
type tour struct {
	s   *scene
	b   *browser
	dir string
	err error
}

// do goes on unless something failed.
func (t *tour) do(err error) {
	if t.err == nil {
		t.err = err
	}
}

// shoot takes a page on a desk, in the dark, and on a phone.
func (t *tour) shoot(name string) {
	for _, d := range []struct {
		name          string
		width, height int
		phone, dark   bool
	}{{"desktop", 1100, 700, false, false}, {"dark", 1100, 700, false, true}, {"phone", 360, 740, true, false}} {
		if t.err != nil {
			return
		}
		t.do(t.b.device(d.width, d.height, d.phone, d.dark))
		n, err := t.b.tooWide(d.width)
		t.do(err)
		if n > 0 {
			t.do(fmt.Errorf("%s is %d pixels too wide for %d", name, n, d.width))
		}
		t.do(t.b.picture(filepath.Join(t.dir, name+"-"+d.name+".png")))
	}
	t.do(t.b.device(1100, 700, false, false))
}

func (t *tour) walk(ctx context.Context) error {
	t.do(t.b.get(t.s.link))
	t.shoot("signin")
	t.do(t.b.click("#signin"))
	t.do(t.b.waitFor("Nobody waits"))
	t.do(t.s.ask(ctx))
	id, crossing, err := t.s.review(ctx)
	t.do(err)
	// Nobody loads the page again: it does so by itself.
	t.do(t.b.waitFor("1 waits for an answer", "mcp/files/move_file"))
	t.shoot("queue")
	t.do(t.b.click(`a[href="/review/` + id + `"]`))
	t.do(t.b.waitFor("What it wants to do"))
	t.shoot("review-locked")
	t.do(t.b.write("#passphrase", passphrase))
	t.do(t.b.click("#unlock button"))
	t.do(t.b.waitFor("Approve once"))
	t.shoot("review")
	t.do(t.b.click("#approve"))
	t.do(t.b.waitFor("approved"))
	if t.err == nil {
		t.do(t.s.served())
	}
	t.do(t.b.waitFor("approved, and it ran"))
	t.shoot("approved")
	at, err := t.b.url()
	t.do(err)
	t.do(t.b.click(`a[href$="/crossing/` + crossing + `"]`))
	t.do(t.b.waitFor("entry: done"))
	t.shoot("story")
	t.do(t.b.click(`nav a[href$="/crossings"]`))
	t.do(t.b.waitFor("Crossings"))
	t.shoot("crossings")
	t.do(t.b.click("a.stop"))
	t.do(t.b.waitFor("Halt everything?"))
	t.shoot("halt")
	t.do(t.b.write("#reason", "it moves the wrong files"))
	t.do(t.b.click("#halt"))
	t.do(t.b.waitFor("Everything is halted", "Resume everything"))
	t.shoot("halted")
	said, err := t.b.complaints()
	t.do(err)
	if len(said) > 0 {
		t.do(fmt.Errorf("the browser complains: %q", said))
	}
	if t.err != nil {
		text, _ := t.b.text()
		return fmt.Errorf("%w\nat %s\n%s", t.err, at, text)
	}
	return nil
}
