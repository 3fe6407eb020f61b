package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// browser is one headless Chromium, driven by chromedriver over WebDriver (W3C)
// and, where WebDriver has no word for it, the DevTools protocol through it.
type browser struct {
	ctx     context.Context
	driver  *exec.Cmd
	session string // the URL of its session
	hc      *http.Client
}

// started is how chromedriver says its port.
var started = regexp.MustCompile(`started successfully on port (\d+)`)

// openBrowser starts chromedriver and a browser with a profile of its own in
// dir. The caller closes it.
func openBrowser(ctx context.Context, dir string) (*browser, error) {
	// It outlives ctx: ended by it, it would leave the browser behind.
	cmd := exec.Command("chromedriver", "--port=0")
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("chromedriver: %w (Debian: apt install chromium chromium-driver)", err)
	}
	b := &browser{ctx: ctx, driver: cmd, hc: &http.Client{Timeout: 2 * time.Minute}}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := started.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return b, b.begin("http://127.0.0.1:"+m[1], dir)
		}
	}
	b.close()
	return nil, fmt.Errorf("chromedriver did not start")
}

func (b *browser) begin(base, dir string) error {
	args := []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + filepath.Join(dir, "profile")}
	var got struct {
		SessionID string `json:"sessionId"`
	}
	b.session = base + "/session"
	err := b.call("POST", "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName": "chrome", "goog:chromeOptions": map[string]any{"args": args}, "goog:loggingPrefs": map[string]any{"browser": "ALL"}}}}, &got)
	if err != nil {
		b.session = ""
		b.close()
		return err
	}
	b.session += "/" + got.SessionID
	return nil
}

// close ends the browser, and then what drives it.
func (b *browser) close() {
	var cancel func()
	b.ctx, cancel = context.WithTimeout(context.WithoutCancel(b.ctx), 20*time.Second)
	defer cancel()
	if b.session != "" {
		_ = b.call("DELETE", "", nil, nil)
	}
	_ = b.driver.Process.Kill()
	_ = b.driver.Wait()
}

// call is one WebDriver command; its value is read into out.
func (b *browser) call(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(b.ctx, method, b.session+path, body)
	if err != nil {
		return err
	}
	resp, err := b.hc.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("webdriver %s %s: %.300s", method, path, answer.Value)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, out)
}

func (b *browser) get(url string) error {
	return b.call("POST", "/url", map[string]any{"url": url}, nil)
}

func (b *browser) url() (string, error) {
	var s string
	return s, b.call("GET", "/url", nil, &s)
}

// find waits for an element, and returns its name in WebDriver.
func (b *browser) find(css string) (string, error) {
	var el map[string]string
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		err = b.call("POST", "/element", map[string]any{"using": "css selector", "value": css}, &el)
		if err == nil {
			for _, id := range el {
				return id, nil
			}
		}
		if b.ctx.Err() != nil {
			return "", b.ctx.Err()
		}
	}
	return "", fmt.Errorf("no element %s: %w", css, err)
}

func (b *browser) click(css string) error {
	id, err := b.find(css)
	if err != nil {
		return err
	}
	return b.call("POST", "/element/"+id+"/click", map[string]any{}, nil)
}

func (b *browser) write(css, text string) error {
	id, err := b.find(css)
	if err != nil {
		return err
	}
	return b.call("POST", "/element/"+id+"/value", map[string]any{"text": text}, nil)
}

// text is what the page says, as it is seen.
func (b *browser) text() (string, error) {
	id, err := b.find("body")
	if err != nil {
		return "", err
	}
	var s string
	return s, b.call("GET", "/element/"+id+"/text", nil, &s)
}

// waitFor waits until the page says all of the texts.
func (b *browser) waitFor(texts ...string) error {
	var last string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && b.ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		s, err := b.text()
		if err != nil {
			continue // it is being exchanged
		}
		last = s
		missing := false
		for _, t := range texts {
			missing = missing || !strings.Contains(s, t)
		}
		if !missing {
			return nil
		}
	}
	return fmt.Errorf("the page never said %q; it says:\n%s", texts, last)
}

// devtools is one command of the DevTools protocol.
func (b *browser) devtools(cmd string, params map[string]any, out any) error {
	return b.call("POST", "/goog/cdp/execute", map[string]any{"cmd": cmd, "params": params}, out)
}

// device makes the window as wide as a device's, in CSS pixels.
func (b *browser) device(width, height int, phone, dark bool) error {
	err := b.devtools("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}, nil)
	if err != nil {
		return err
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	return b.devtools("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// script says whether pages may run script.
func (b *browser) script(on bool) error {
	return b.devtools("Emulation.setScriptExecutionDisabled", map[string]any{"value": !on}, nil)
}

// tooWide is by how many pixels the page is wider than the device: a phone's
// own window grows with what is in it.
func (b *browser) tooWide(width int) (int, error) {
	var n int
	err := b.call("POST", "/execute/sync", map[string]any{
		"script": "return Math.max(document.scrollingElement.scrollWidth, window.innerWidth)", "args": []any{}}, &n)
	return n - width, err
}

// focused names what has the focus.
func (b *browser) focused() (string, error) {
	var s string
	return s, b.call("POST", "/execute/sync", map[string]any{
		"script": "const e = document.activeElement; return e.id || e.getAttribute('href') || e.tagName", "args": []any{}}, &s)
}

// key presses one key where the focus is.
func (b *browser) key(code string) error {
	return b.call("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keyboard",
		"actions": []any{map[string]any{"type": "keyDown", "value": code}, map[string]any{"type": "keyUp", "value": code}}}}}, nil)
}

// complaints are what the browser's console says of errors and of what the
// content security policy refused.
func (b *browser) complaints() ([]string, error) {
	var entries []struct{ Level, Message string }
	err := b.call("POST", "/se/log", map[string]any{"type": "browser"}, &entries)
	var out []string
	for _, e := range entries {
		out = append(out, e.Level+": "+e.Message)
	}
	return out, err
}

// picture writes the whole page to a file, as PNG.
func (b *browser) picture(file string) error {
	var got struct{ Data string }
	err := b.devtools("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &got)
	if err != nil {
		return err
	}
	png, err := base64.StdEncoding.DecodeString(got.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o600)
}
