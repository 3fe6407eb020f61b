package config

import (
	"strings"
	"testing"
)

// The configuration names where an address is, never what it is.
func TestLoadAlerts_refuses(t *testing.T) {
	for text, want := range map[string]string{
		"channels: {a: {kind: sms}}":                                              "one of file, env and command",
		"channels: {a: {kind: sms, env: X, command: [y]}}":                        "one of file, env and command",
		"channels: {a: {kind: pager, env: X}}":                                    "pager",
		"channels: {a: {kind: sms, env: 'twilio://a:hunter2@1/2'}}":               "no name of an environment variable",
		"channels: {a: {kind: sms, url: 'twilio://a:hunter2@1/2'}}":               "url",
		"channels: {a: {kind: sms, file: none}}":                                  "cannot read",
		"channels: {'a b': {kind: sms, env: X}}":                                  "is no name",
		"channels: {a: {kind: sms, env: X}}\n  severities: {HIGH: [b]}":           "there is no channel",
		"channels: {a: {kind: sms, env: X}}\n  severities: {HIGH: [a, a]}":        "twice",
		"channels: {a: {kind: sms, env: X}}\n  severities: {HIGH: []}":            "names no channel",
		"channels: {a: {kind: sms, env: X}}\n  severities: {SEVERE: [a]}":         "SEVERE",
		"channels: {a: {kind: sms, command: ['']}}":                               "without a program",
		"channels: {a: {kind: sms, env: X}}\n  report: {to: [b]}":                 "alerts.report.to: there is no channel",
		"channels: {a: {kind: sms, env: X}}\n  report: {to: [a, a]}":              "alerts.report.to names \"a\" twice",
		"channels: {a: {kind: sms, env: X}}\n  report: {to: []}":                  "alerts.report names no channel",
		"channels: {a: {kind: sms, env: X}}\n  report: {daily_at: '7:00'}":        "alerts.report names no channel",
		"channels: {a: {kind: sms, env: X}}\n  report: {to: [a], daily_at: noon}": "is no time of day",
	} {
		_, err := load(t, "version: 1\nalerts:\n  "+text+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the address is shown: %v", err)
		}
	}
	if _, err := load(t, "version: 1\nalerts:\n  channels: {a: {kind: sms, env: X}, b: {kind: mail, command: [y, z]}}\n  severities: {CRITICAL: [a, b], LOW: []}\n  report: {to: [b], daily_at: '23:59'}\n"); err != nil {
		t.Error(err)
	}
}
