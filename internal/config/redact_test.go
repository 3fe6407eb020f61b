package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func TestRedactSectionIsJudgedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"  register: [{}]":                           "holdfast.yaml:3: a source of secrets needs one of",
		"  register:\n    - {env: A, file: b}":       "holdfast.yaml:4: a source of secrets needs one of",
		"  register:\n    - {env: canary-hunter2}":   "holdfast.yaml:4: redact.register: that is no name",
		"  register:\n    - canary-hunter2":          "holdfast.yaml:4: redact.register[0]: no value stands in this file",
		"  register:\n    - {value: canary-hunter2}": `holdfast.yaml:4: unknown key "value"`,
		"  register:\n    - {env: A, whole: true}":   "holdfast.yaml:4: whole belongs to a file",
		"  register:\n    - {command: []}":           "holdfast.yaml:4: a command without a program",
		"  register:\n    - {file: nowhere}":         "holdfast.yaml:4: cannot read",
		"  probable: [everything]":                   "holdfast.yaml:3: redact.probable[0] must be one of",
		"  probable: secrets":                        "holdfast.yaml:3: redact.probable must be a list",
		"  unknown: 1":                               "holdfast.yaml:3: unknown key",
		"  detector: {}":                             `holdfast.yaml:3: "command" is missing`,
		"  detector: {command: []}":                  "holdfast.yaml:3: a command without a program",
		"  detector: {command: [a], timeout: 9ms}":   "redact.detector: invalid timeout: expected 10ms to 30s",
		"  detector: {command: [a], timeout: 31s}":   "redact.detector: invalid timeout: expected 10ms to 30s",
		"  detector: {command: [a], timeout: -1s}":   "holdfast.yaml:3: ",
		"  detector: {command: a}":                   "holdfast.yaml:3: redact.detector.command must be a list",
		"  detector: {command: [a], env: [B]}":       `holdfast.yaml:3: unknown key "env"`,
	} {
		_, err := load(t, "version: 1\nredact:\n"+text+"\n")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// A key that has no effect any longer is accepted and named, with its line; what stays is checked as before.
func TestLoadNamesDeprecatedKeys(t *testing.T) {
	l, err := load(t, `version: 1
redact:
  probable: [names]
egress:
  domains:
    a.example.com: {redact: {guesses: [phones]}}
    b.example.com: {redact: {request: mask}}
`)
	if err != nil || len(l.Deprecated) != 2 || !slices.ContainsFunc(l.Deprecated, func(s string) bool {
		return strings.HasPrefix(s, "holdfast.yaml:3: redact: probable is deprecated and has no effect: ")
	}) || !slices.ContainsFunc(l.Deprecated, func(s string) bool {
		return strings.HasPrefix(s,
			"holdfast.yaml:6: redact: guesses of a.example.com is deprecated and has no effect: ")
	}) {
		t.Errorf("%q, %v", l.Deprecated, err)
	}
	l, err = load(t, "version: 1\nredact: {detector: {command: [find-names], timeout: 2s}}\n")
	if err != nil || l.Deprecated != nil || l.Config.Redact.Detector.Command[0] != "find-names" ||
		l.Config.Redact.Detector.Timeout != Duration(2*time.Second) {
		t.Errorf("%v", err)
	}
}

// Rows and contracts name a detector with the same keys. One whose findings nothing would mask or refuse is refused.
func TestRowsAndContractsNameADetector(t *testing.T) {
	l, err := load(t, `version: 1
egress:
  domains:
    a.example.com: {redact: {detector: {command: [find, names]}}}
    m.example.com: {type: llm, redact: {detector: {command: [find, names], timeout: 2s}}}
boundaries:
  - {boundary: mcp/fs/*, risk: LOW, redact: {detector: {command: [other]}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, spec := range l.Config.ListDetectors() {
		texts = append(texts, spec.Text())
	}
	if len(texts) != 3 {
		t.Fatal(texts)
	}
	for _, d := range l.Domains.Domains() {
		if !slices.Contains(texts[:2], d.Detector) {
			t.Errorf("%s has the detector %q, not one of %q", d.Name, d.Detector, texts)
		}
	}
	if !slices.ContainsFunc(l.Policy.Contracts, func(c holdfast.Contract) bool {
		return c.Redact != nil && c.Redact.Detector == texts[2]
	}) {
		t.Error("the contract has no detector")
	}
	const row = "egress: {domains: {a.example.com: {"
	const contract = "boundaries: [{boundary: mcp/fs/*, risk: LOW, redact: {"
	for text, want := range map[string]string{
		row + "redact: {detector: {}}}}}":                                          `"command" is missing`,
		row + "redact: {detector: {command: [a], env: [B]}}}}}":                    `unknown key "env"`,
		row + "redact: {detector: {command: [a], timeout: 1h}}}}}":                 "invalid timeout: expected 10ms to 30s",
		row + "redact: {personal: pass, detector: {command: [a]}}}}}":              "has a detector, and lets pass what it finds",
		row + "redact: {request: off, response: off, detector: {command: [a]}}}}}": "has a detector, and lets pass what it finds",
		row + "type: llm, redact: {request: mask, detector: {command: [a]}}}}}":    "has a detector, and does not replace",
		row + "inspect: opaque, redact: {detector: {command: [a]}}}}}":             "is opaque and names a detector",
		contract + "detector: {command: []}}}]":                                    "a command without a program",
		contract + "personal: pass, detector: {command: [a]}}}]":                   "whose findings personal: pass lets through",
		contract + "detector: {comand: [a]}}}]":                                    `unknown key "comand"`,
	} {
		if _, err := load(t, "version: 1\n"+text+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nnot %s", text, err, want)
		}
	}
}
