package daemon

import (
	"log/slog"
	"testing"
)

// A log that is read by its level alone shows what calls for a person (D41a).
func TestNotice_D41a_the_log_is_as_loud_as_the_notice(t *testing.T) {
	for notify, want := range map[string]slog.Level{"info": slog.LevelInfo, "warning": slog.LevelWarn, "error": slog.LevelError, "critical": slog.LevelError, "": slog.LevelError} {
		if got := loudness(notify); got != want {
			t.Errorf("%q: %v, not %v", notify, got, want)
		}
	}
}
