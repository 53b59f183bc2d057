package main

import (
	"io"
	"log/slog"
	"math"
	"strings"
)

// Levels of the log beyond slog's own.
const (
	levelTrace = slog.LevelDebug - 4
	levelOff   = slog.Level(math.MaxInt32)
)

// logLevel is the level from which on things are logged.
type logLevel struct{ slog.Level }

var logLevels = map[string]slog.Level{
	"OFF": levelOff, "ERROR": slog.LevelError, "WARN": slog.LevelWarn, "INFO": slog.LevelInfo, "DEBUG": slog.LevelDebug, "TRACE": levelTrace,
}

func (l *logLevel) UnmarshalText(text []byte) error {
	level, ok := logLevels[strings.ToUpper(string(text))]
	if !ok {
		return unknownName(string(text), "OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
	}
	l.Level = level
	return nil
}

// logsMode is the form of the log: lines for people, or JSON.
type logsMode struct{ json bool }

func (m *logsMode) UnmarshalText(text []byte) error {
	switch strings.ToUpper(string(text)) {
	case "HUMAN":
		m.json = false
	case "JSON":
		m.json = true
	default:
		return unknownName(string(text), "HUMAN", "JSON")
	}
	return nil
}

func newLogger(w io.Writer, level slog.Level, mode logsMode) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.LevelKey && a.Value.Any() == levelTrace {
			a.Value = slog.StringValue("TRACE")
		}
		return a
	}}
	if mode.json {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
