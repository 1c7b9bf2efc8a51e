package compile

import (
	"cmp"
	"slices"
)

// Warnings are those of the lines that warn, each once: by file and line.
func Warnings(logs []Log) []Log {
	list := slices.DeleteFunc(slices.Clone(logs), func(log Log) bool { return log.Level != "warning" && log.Level != "err" })
	slices.SortFunc(list, CompareLogs)
	return slices.Compact(list)
}

// CompareLogs orders lines by file and line.
func CompareLogs(a, b Log) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Level, b.Level))
}

// Plain is a message in one line without its place, which whoever shows it shows apart.
func (l Log) Plain() string { return unplaced(l.Message) }
