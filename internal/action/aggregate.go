package action

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Aggregate sums up one field of the answers.
type Aggregate struct {
	Function Function `json:"function"`
	Field    string   `json:"field"` // of the results
	// Format is printf's for one line: of a value and its number (summary), or of the one number (average, sum). Empty: the usual one.
	Format string            `json:"format,omitzero"`
	Labels map[string]string `json:"labels,omitzero"` // boolean_summary: what true and false are called
}

// Function is how values are summed up.
type Function string

// The functions.
const (
	Summary        Function = "summary"         // how often each value came
	Average        Function = "average"         // of numbers
	Sum            Function = "sum"             // of numbers
	BooleanSummary Function = "boolean_summary" // how often true and false came, under their labels
	Distribution   Function = "distribution"    // numbers in Buckets steps from the least to the most, as a chart
)

func (a Aggregate) check(results *Schema) error {
	if !slices.Contains([]Function{Summary, Average, Sum, BooleanSummary, Distribution}, a.Function) {
		return fault.New(fault.Invalid, "%.40q is no function; summary, average, sum, boolean_summary and distribution are", a.Function)
	}
	if _, known := results.Field(a.Field); !known && len(results.Fields()) > 0 {
		return fault.New(fault.Invalid, "the results have no field %.80q", a.Field)
	}
	if strings.Count(strings.ReplaceAll(a.Format, "%%", ""), "%") > 2 {
		return fault.New(fault.Invalid, "the format of %s has more than two places", a.Field)
	}
	return nil
}

// Summed is an aggregate over answers.
type Summed struct {
	Aggregate Aggregate      `json:"aggregate"`
	Title     string         `json:"title"`            // of the field
	Values    map[string]int `json:"values,omitzero"`  // summary, boolean_summary: how many answers have a value
	Number    *float64       `json:"number,omitzero"`  // average, sum; nil: no answer has a number
	Least     float64        `json:"least,omitzero"`   // distribution: where the first bucket begins
	Most      float64        `json:"most,omitzero"`    // and the last one ends
	Buckets   []int          `json:"buckets,omitzero"` // distribution
	Without   int            `json:"without,omitzero"` // answers that have no such value
	Answers   int            `json:"answers,omitzero"` // of nodes that did it
}

// Buckets is how many steps a distribution has.
const Buckets = 20

// maxValues bounds the values of a summary; the rarest of more are counted as others.
const maxValues = 1000

// Over sums up the answers of nodes that did what was asked.
func (a Aggregate) Over(answers []Answer, title string) Summed {
	s := Summed{Aggregate: a, Title: title}
	var numbers []float64
	for _, answer := range answers {
		if answer.Code != Done {
			continue
		}
		s.Answers++
		var data map[string]any
		value, there := any(nil), false
		if json.Unmarshal(answer.Data, &data) == nil {
			value, there = data[a.Field]
		}
		if !there || value == nil || !a.takes(value) {
			s.Without++
			continue
		}
		if number, ok := value.(float64); ok && a.numeric() {
			numbers = append(numbers, number)
			continue
		}
		s.count(a.label(value))
	}
	s.sum(numbers)
	return s
}

func (a Aggregate) numeric() bool {
	return a.Function == Average || a.Function == Sum || a.Function == Distribution
}

// takes says whether the function can do something with a value.
func (a Aggregate) takes(value any) bool {
	switch value.(type) {
	case float64:
		return a.Function != BooleanSummary
	case bool:
		return !a.numeric()
	}
	return !a.numeric() && a.Function != BooleanSummary
}

func (a Aggregate) label(value any) string {
	name := text(value)
	if a.Function == BooleanSummary {
		return cmp.Or(a.Labels[name], name)
	}
	return name
}

func (s *Summed) count(value string) {
	if s.Values == nil {
		s.Values = map[string]int{}
	}
	if _, known := s.Values[value]; !known && len(s.Values) >= maxValues {
		value = "(others)"
	}
	s.Values[value]++
}

func (s *Summed) sum(numbers []float64) {
	if len(numbers) == 0 {
		return
	}
	total := 0.0
	for _, n := range numbers {
		total += n
	}
	switch s.Aggregate.Function {
	case Average:
		s.Number = new(total / float64(len(numbers)))
	case Sum:
		s.Number = &total
	case Distribution:
		s.Least, s.Most = slices.Min(numbers), slices.Max(numbers)
		s.Buckets = make([]int, Buckets)
		for _, n := range numbers {
			s.Buckets[bucket(n, s.Least, s.Most)]++
		}
	case Summary, BooleanSummary:
	}
}

func bucket(n, least, most float64) int {
	if most == least {
		return 0
	}
	return min(int((n-least)/(most-least)*Buckets), Buckets-1)
}

// Lines are the sum for people, one thing a line. The most frequent value is first.
func (s Summed) Lines() []string {
	var lines []string
	switch s.Aggregate.Function {
	case Summary, BooleanSummary:
		values := slices.SortedFunc(maps.Keys(s.Values), func(a, b string) int {
			return cmp.Or(cmp.Compare(s.Values[b], s.Values[a]), cmp.Compare(a, b))
		})
		widest := 0
		for _, v := range values {
			widest = max(widest, len(v))
		}
		for _, v := range values {
			if s.Aggregate.Format != "" {
				lines = append(lines, fmt.Sprintf(s.Aggregate.Format, v, s.Values[v]))
				continue
			}
			lines = append(lines, fmt.Sprintf("%*s = %d", widest, v, s.Values[v]))
		}
	case Average, Sum:
		if s.Number != nil {
			format := cmp.Or(s.Aggregate.Format, map[Function]string{Average: "Average: %.3f", Sum: "Total: %.3f"}[s.Aggregate.Function])
			lines = append(lines, fmt.Sprintf(format, *s.Number))
		}
	case Distribution:
		if s.Buckets != nil {
			lines = append(lines, fmt.Sprintf("%s  min: %g  max: %g", Chart(s.Buckets), s.Least, s.Most))
		}
	}
	return lines
}

// Chart draws numbers as a line of bars.
func Chart(numbers []int) string {
	bars := []rune(" ▁▂▃▄▅▆▇█")
	most := max(slices.Max(append([]int{0}, numbers...)), 1)
	var b strings.Builder
	for _, n := range numbers {
		b.WriteRune(bars[int(math.Ceil(float64(n)/float64(most)*float64(len(bars)-1)))])
	}
	return b.String()
}
