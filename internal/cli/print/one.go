package print

import (
	"fmt"
	"io"
)

// One prints one thing: as JSON or YAML for programs, or for people as text does.
func One[T any](to Printer, thing T, text func(Printer, T) error) error {
	if to.ForPrograms() {
		return to.Thing(thing)
	}
	return text(to, thing)
}

// Rows is text of names and values, a row each.
func Rows[T any](rows func(T) [][]string) func(Printer, T) error {
	return func(to Printer, thing T) error { return to.Rows(nil, rows(thing)) }
}

// Words is text as it is.
func Words[T any](words func(T) string) func(Printer, T) error {
	return func(to Printer, thing T) error { return to.Text(words(thing)) }
}

// Advice is text that is said as a hint: the thing itself is no result for people.
func Advice[T any](advice func(T) string) func(Printer, T) error {
	return func(to Printer, thing T) error {
		to.Hint("%s", advice(thing))
		return nil
	}
}

// Text prints text as it is.
func (p Printer) Text(text string) error {
	_, err := io.WriteString(p.Out, text)
	return err
}

// Linef prints a sentence: on a terminal in lines that fit.
func (p Printer) Linef(format string, args ...any) error {
	return p.Text(Wrapped(fmt.Sprintf(format+"\n", args...), p.Width))
}

// Line prints a line; whether it can be written is not asked.
func (p Printer) Line(line string) { _ = p.Text(line + "\n") }
