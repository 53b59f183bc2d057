package main

import (
	"log/slog"
	"strings"

	"svc/internal/logs"
)

// logLevel is the level from which on things are logged.
type logLevel struct{ slog.Level }

func (l *logLevel) UnmarshalText(text []byte) error {
	level, ok := logs.ParseLevel(string(text))
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

func (m logsMode) mode() logs.Mode {
	if m.json {
		return logs.JSON
	}
	return logs.Human
}
