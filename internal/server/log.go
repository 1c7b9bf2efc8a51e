package server

import (
	"io"
	"log/slog"

	"github.com/tutti-project/tutti/internal/server/settings"
)

// logger is a log whose level can change while it is used.
type logger struct {
	*slog.Logger
	level *slog.LevelVar
}

func newLogger(c settings.Config, out io.Writer) logger {
	level := new(slog.LevelVar)
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(out, options)
	if c.LogFormat == "json" {
		handler = slog.NewJSONHandler(out, options)
	}
	l := logger{Logger: slog.New(handler), level: level}
	l.set(c.LogLevel)
	return l
}

// set follows the log_level setting, which Check has seen.
func (l logger) set(name string) {
	var level slog.Level
	if level.UnmarshalText([]byte(name)) == nil {
		l.level.Set(level)
	}
}
