package filter

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Source is a kind of data that only a node itself knows. In an expression it is a function whose result has fields.
type Source struct {
	Name     string
	Alias    string // a second name, of MCollective; empty: none
	Summary  string
	Argument Argument
	Fields   []Field
}

// Argument is what a source is asked about.
type Argument struct {
	Name     string // empty: the source takes no argument
	Optional bool
	Example  string
	form     *regexp.Regexp // what an argument is like
	isRegexp bool           // it is a regular expression
	maxBytes int
}

// Field is a piece of an answer.
type Field struct {
	Name    string
	Type    Type
	Unit    string // of a number: bytes, seconds, or seconds since 1970; empty: it is a count
	Summary string
}

// Type is what a field holds.
type Type uint8

// The types of fields.
const (
	Text    Type = iota
	Number       // a whole number or one with a fraction
	Boolean      // true or false
)

func (t Type) String() string { return [...]string{"text", "number", "boolean"}[t] }

// Units.
const (
	bytes     = "bytes"
	seconds   = "seconds"
	since1970 = "seconds since 1970"
)

var (
	pathForm     = regexp.MustCompile(`^(/|[A-Za-z]:[/\\]).*$`)
	nameForm     = regexp.MustCompile(`^[^\s'"` + "`" + `/\\][^'"` + "`" + `]*$`)
	resourceForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(::[A-Za-z][A-Za-z0-9_]*)*\[.+\]$`)
	anyForm      = regexp.MustCompile(`.`)
)

var sources = [...]Source{
	{
		Name: "file", Alias: "fstat", Summary: "a file, directory or link by its path; a link is not followed",
		Argument: Argument{Name: "path", Example: "/etc/hosts", form: pathForm, maxBytes: 1024},
		Fields: []Field{
			{"present", Boolean, "", "it is there; without it, no other field is there"},
			{"type", Text, "", "file, directory, link, socket, pipe, device or other"},
			{"size", Number, bytes, "how much it holds"},
			{"mode", Text, "", "permissions, four octal digits: 0644"},
			{"uid", Number, "", "number of its owner; not on Windows"},
			{"gid", Number, "", "number of its group; not on Windows"},
			{"md5", Text, "", "MD5 of what a file holds, in hexadecimal digits"},
			{"sha256", Text, "", "SHA-256 of what a file holds, in hexadecimal digits"},
			{"mtime", Number, since1970, "when its content changed last"},
			{"age", Number, seconds, "how long ago that was"},
		},
	},
	{
		Name: "package", Summary: "a package by its name",
		Argument: Argument{Name: "name", Example: "openssl", form: nameForm, maxBytes: 255},
		Fields: []Field{
			{"installed", Boolean, "", "it is installed"},
			{"version", Text, "", "the version that is installed; not there without one"},
			{"status", Text, "", "the version that is installed, or absent"},
		},
	},
	{
		Name: "service", Summary: "a service by its name",
		Argument: Argument{Name: "name", Example: "sshd", form: nameForm, maxBytes: 255},
		Fields:   []Field{{"status", Text, "", "running, stopped or unknown"}},
	},
	{
		Name: "puppet", Summary: "the Puppet agent",
		Fields: []Field{
			{"applying", Boolean, "", "a run goes on"},
			{"enabled", Boolean, "", "runs are allowed"},
			{"idling", Boolean, "", "its daemon is there and no run goes on"},
			{"daemon_present", Boolean, "", "its daemon is there"},
			{"disable_message", Text, "", "why it was disabled; empty if it is enabled"},
			{"status", Text, "", "applying, idling, stopped or disabled"},
			{"lastrun", Number, since1970, "when the last run was; 0: never"},
			{"since_lastrun", Number, seconds, "how long ago that was; not there if never"},
		},
	},
	{
		Name: "resource", Summary: "a resource by its reference, and the last run",
		Argument: Argument{Name: "reference", Optional: true, Example: "File[/etc/hosts]", form: resourceForm, maxBytes: 1024},
		Fields: []Field{
			{"managed", Boolean, "", "it was in the last catalog"},
			{"total_resources", Number, "", "resources of the last run"},
			{"changed_resources", Number, "", "resources that the last run changed"},
			{"corrected_resources", Number, "", "of these, those that something else had changed"},
			{"failed_resources", Number, "", "resources that failed"},
			{"out_of_sync_resources", Number, "", "resources that were not as they should be"},
			{"total_time", Number, seconds, "how long the last run took"},
			{"config_retrieval_time", Number, seconds, "how long it waited for the catalog"},
			{"config_version", Text, "", "the version of the catalog"},
			{"lastrun", Number, since1970, "when the last run was; 0: never"},
			{"since_lastrun", Number, seconds, "how long ago that was; not there if never"},
		},
	},
	{
		Name: "process", Summary: "processes by a regular expression of their command lines",
		Argument: Argument{Name: "pattern", Example: "^/usr/sbin/nginx", form: anyForm, isRegexp: true, maxBytes: 255},
		Fields:   []Field{{"count", Number, "", "how many there are"}},
	},
}

// Sources are what nodes can be asked, in a fixed order. The slices must not be changed.
func Sources() []Source { return sources[:] }

// sourceOf finds a source by its name or its alias.
func sourceOf(name string) *Source {
	for i := range sources {
		if name == sources[i].Name || name == sources[i].Alias && name != "" {
			return &sources[i]
		}
	}
	return nil
}

// field finds a field by its name.
func (s *Source) field(name string) (*Field, *mistake) {
	i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
	if i >= 0 {
		return &s.Fields[i], nil
	}
	m := &mistake{detail: s.Name + " has no field " + shorten(name) + "; there are " + strings.Join(s.names(), ", ")}
	m.hint = fault.DidYouMean(name, s.names())
	return nil, m
}

func (s *Source) names() []string {
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = f.Name
	}
	return names
}

// example is how the source is written.
func (s *Source) example() string {
	if s.Argument.Name == "" {
		return s.Name + "()." + s.Fields[0].Name
	}
	return s.Name + "(" + quote(s.Argument.Example) + ")." + s.Fields[0].Name
}

// query makes the question; given says whether there is an argument at all.
func (s *Source) query(argument string, given bool) (Query, *mistake) {
	a := s.Argument
	wrong := func(detail string) (Query, *mistake) {
		return Query{}, &mistake{detail: s.Name + " " + detail, hint: "write it like " + s.example()}
	}
	switch {
	case a.Name == "" && given:
		return wrong("takes no argument")
	case a.Name == "" || a.Optional && !given:
		return Query{Source: s.Name}, nil
	case !given:
		return wrong("needs its argument, the " + a.Name)
	case len(argument) > a.maxBytes:
		return wrong("takes an argument that is shorter than this")
	case strings.ContainsFunc(argument, forbidden("")) || !a.form.MatchString(argument):
		return wrong("takes a " + a.Name + ", and " + shorten(argument) + " is none")
	}
	if a.isRegexp {
		if _, m := parseRegexp(argument); m != nil {
			return Query{}, m
		}
	}
	if s.Name == "resource" {
		argument = reference(argument)
	}
	return Query{s.Name, argument}, nil
}

// reference writes the type of a reference in capitals, as catalogs have it.
func reference(text string) string {
	kind, title, _ := strings.Cut(text, "[")
	words := strings.Split(kind, "::")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + strings.ToLower(word[1:])
	}
	return strings.Join(words, "::") + "[" + title
}
