package codingtest

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Prompt is what a person asks of the host.
const Prompt = "Our new contact is carol.reyes@corp-example.com. Put that address and the token " +
	"glpat-9Rt4_Kp2Xw7Zq1Lm5Vb8 into service.py, collect what config.env, contacts.csv and key.pem have in " +
	"notes.json, write send.py, and commit everything under the new contact's address."

// values are what must not reach the provider: those of the prompt, of files, and of the commit that is there.
var values = map[string]string{
	"new address":    "carol.reyes@corp-example.com",
	"new token":      "glpat-9Rt4_Kp2Xw7Zq1Lm5Vb8",
	"token":          "ghp_0123456789abcdefghijABCDEFGHIJ012345",
	"password":       "Maple417!xq",
	"secret key":     "kQ7vN2xR9bT4mW6yZ1cF8hJ3lP5sD0gAeUiOqX7r",
	"address":        "alice.meyer@corp-example.com",
	"card":           "4111 1111 1111 1111",
	"phone":          "+49 30 901820417",
	"support":        "support@corp-example.com",
	"committer":      "dave.lind@corp-example.com",
	"connection":     "Nq4Vz8Tw2Kp6",
	"private key":    "MIIEpAIBAAKCAQEA4Kq7T0y3Yb9XfW2m8uR5sJ1vD6cH0pL4nE7aG9zQ2xB5tV8k",
	"private key, 2": "J2hM6yC1wF4rS7dK0bN3uZ9eP5xA8gL2vT6qY1jR4oW7iX0mE3cU9fH5nB8kD2sG",
}

// Author is who committed the tree before the task.
const Author = "Dave Lind <dave.lind@corp-example.com>"

// Tree returns the files of the work tree before the task, by name.
func Tree() map[string]string {
	return map[string]string{
		"config.env": "GITHUB_TOKEN=" + values["token"] + "\nDB_PASSWORD=" + values["password"] +
			"\nAWS_SECRET_ACCESS_KEY=" + values["secret key"] + "\nREGION=eu-central-1\n" +
			"DATABASE_URL=postgres://app:" + values["connection"] + "@db.corp-example.com:5432/orders\n",
		"contacts.csv": "id,email,phone,card\n417," + values["address"] + "," + values["phone"] + "," +
			values["card"] + "\n",
		"key.pem": "-----BEGIN RSA PRIVATE KEY-----\n" + values["private key"] + "\n" + values["private key, 2"] +
			"\n-----END RSA PRIVATE KEY-----\n",
		"service.py": "import os\n\nSUPPORT = \"" + values["support"] + "\"\n" +
			"TIMEOUT = 30\n\n\ndef find_password(name):\n    return os.environ[name.upper() + \"_PASSWORD\"]\n",
	}
}

// ListLeaks returns the values that a text has, with the encoding.
func ListLeaks(text string) (leaks []string) {
	for name, value := range values {
		once, twice := quoteText(value), quoteText(quoteText(value))
		forms := map[string]string{"raw": value, "JSON": once, "JSON, twice": twice, "URL": url.QueryEscape(value),
			"URL path": url.PathEscape(value), "hex": hex.EncodeToString([]byte(value)),
			"HEX": strings.ToUpper(hex.EncodeToString([]byte(value)))}
		for shift := range 3 { // the letters that the value alone determines, at each offset in a base64 text
			whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + value))
			forms[fmt.Sprintf("base64 at %d", shift)] = whole[(8*shift+5)/6 : 8*(shift+len(value))/6]
		}
		for form, find := range forms {
			if strings.Contains(text, find) {
				leaks = append(leaks, name+" ("+form+")")
			}
		}
	}
	slices.Sort(leaks)
	return leaks
}

// quoteText returns a text as it is inside of a JSON string.
func quoteText(text string) string {
	quoted := encodeArguments(text)
	return quoted[1 : len(quoted)-1]
}

// signature is a provider's signature of a thought.
const signature = "EqoBCkgIARABGAIiQL9wY1hQ2x7f3Zt0bGm5rPqVd8sKc4Jn6Tj1Xo0HuWf2LzEa7RyBi9NvMpSgDkQ5ZcUl3"

// turn is what the model does next: it may think and speak, and calls a tool unless it is ready.
type turn struct {
	think, say, tool string
	arguments        document
}

// conversation is what the model received so far.
type conversation struct {
	prompt  string
	results []string
}

// found are texts that the model reads out of a conversation, by name.
type found map[string]string

// copied are what the model copies, by name: patterns whose group is the text.
var copied = map[string]*regexp.Regexp{
	"new address": regexp.MustCompile(`new contact is (\S+@\S+?)\. Put`),
	"new token":   regexp.MustCompile(`the token (\S+) into`),
	"token":       regexp.MustCompile(`GITHUB_TOKEN=(\S+)`),
	"password":    regexp.MustCompile(`DB_PASSWORD=(\S+)`),
	"secret key":  regexp.MustCompile(`AWS_SECRET_ACCESS_KEY=(\S+)`),
	"connection":  regexp.MustCompile(`DATABASE_URL=(\S+)`),
	"address":     regexp.MustCompile(`(?m)^417,([^,]+),`),
	"phone":       regexp.MustCompile(`(?m)^417,[^,]+,([^,]+),`),
	"card":        regexp.MustCompile(`(?m)^417,[^,]+,[^,]+,([0-9 ]+)$`),
	"private key": regexp.MustCompile(`(?s)(-----BEGIN RSA PRIVATE KEY-----\n.*?-----END RSA PRIVATE KEY-----)`),
	"support":     regexp.MustCompile(`SUPPORT = "([^"]+)"`),
	"committer":   regexp.MustCompile(`last commit by (\S+)`),
	"directory":   regexp.MustCompile(`(?m)^directory (\S+)$`),
	"base64":      regexp.MustCompile(`(?m)^in base64 (\S+)$`),
	"hex":         regexp.MustCompile(`(?m)^in hex (\S+)$`),
}

// listKnown returns what the model knows.
func (c *conversation) listKnown() found {
	all := c.prompt + "\n" + strings.Join(c.results, "\n")
	known := found{}
	for name, pattern := range copied {
		if m := pattern.FindStringSubmatch(all); m != nil {
			known[name] = m[1]
		} else {
			known[name] = "UNKNOWN " + name
		}
	}
	return known
}
