package command

import (
	"bytes"
	"testing"
)

func TestPasswordIsFoundByItsPlace(t *testing.T) {
	for line, want := range map[string]string{
		"htpasswd -b f kim hunter22x":           "hunter22x",
		"htpasswd -cbB /etc/f kim 'hunter22 x'": "hunter22 x",
		"htpasswd -c f kim":                     "",
		"htpasswd f kim hunter22x":              "",
		"chpasswd <<< 'kim:hunter22x'":          "hunter22x",
		"chpasswd < file":                       "",
		"chpasswd":                              "",
	} {
		n := bytes.IndexAny([]byte(line), " \n")
		if n < 0 {
			n = len(line)
		}
		if w := FindArgument([]byte(line), 0, n); line[w.Start:w.End] != want {
			t.Errorf("%s: got %q, want %q", line, line[w.Start:w.End], want)
		}
	}
}

func TestPasswordIsFoundBeforePipe(t *testing.T) {
	for line, want := range map[string]string{
		"echo hunter22x | sudo -S ls":                            "hunter22x",
		"cd /x && echo 'hunter22x' | sudo -S ls":                 "hunter22x",
		"echo -n hunter22x|docker login -u kim --password-stdin": "hunter22x",
		`printf '%s\n' "hunter22x" | gpg --passphrase-fd 0 -d f`: "hunter22x",
		`printf 'hunter22x\n' | kinit kim`:                       "hunter22x",
		"echo 'kim:hunter22x' | chpasswd":                        "hunter22x",
		"echo kim:hunter22x | sudo chpasswd":                     "hunter22x",
		"echo hello | sudo tee /etc/x":                           "",
		"cat f | docker login --password-stdin":                  "",
		"echo hello | grep x":                                    "",
		"| sudo -S ls":                                           "",
		"echo\nhunter22x | sudo -S ls":                           "",
	} {
		i := bytes.IndexByte([]byte(line), '|')
		if w := FindBeforePipe([]byte(line), i); line[w.Start:w.End] != want {
			t.Errorf("%s: got %q, want %q", line, line[w.Start:w.End], want)
		}
	}
}

func TestPasswordIsFoundAtSwitch(t *testing.T) {
	for line, want := range map[string]string{
		`net use \\h\s hunter22x /user:kim`:    "hunter22x",
		`net use x: \\h\s /user:kim hunter22x`: "hunter22x",
		`net use x: \\h\s /user:kim`:           "",
		`net use \\h\s * /user:kim`:            "",
		`xfreerdp /u:kim /p:hunter22x /v:h`:    "hunter22x",
		`docker run /p:hunter22x`:              "",
	} {
		for i := range line {
			if line[i] != ':' || line[i-1] == 'x' || line[i-1] == 'u' || line[i-1] == 'v' {
				continue
			}
			if w := FindAtSwitch([]byte(line), i); line[w.Start:w.End] != want {
				t.Errorf("%s: got %q, want %q", line, line[w.Start:w.End], want)
			}
		}
	}
}

func TestFlagOfOneLetterTakesPassword(t *testing.T) {
	for _, c := range []struct {
		line   string
		letter byte
		glued  bool
		want   bool
	}{
		{"mysql -u root ", 'p', true, true}, {"unrar x ", 'p', true, true}, {"mysql ", 'p', false, false},
		{"sshpass ", 'p', false, true}, {"mkdir ", 'p', false, false}, {"redis-cli ", 'a', false, true},
	} {
		if got := TakesPassword([]byte(c.line), c.letter, c.glued); got != c.want {
			t.Errorf("%s-%c, glued %v: got %v", c.line, c.letter, c.glued, got)
		}
	}
}
