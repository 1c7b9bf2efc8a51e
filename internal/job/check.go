package job

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// The bounds of an order.
const (
	MaxTargets          = 100_000
	MaxParameterBytes   = 16 << 20
	MaxTextBytes        = 64 << 10 // a command, an argument, a query
	MaxArguments        = 1000
	MaxDescriptionBytes = 1000
	MaxTags             = 200
	MaxUserdataBytes    = 64 << 10
	MaxTime             = 7 * 24 * time.Hour // of a run, and for offline nodes
)

// Check returns an Invalid fault for the first thing in s that cannot be ordered. It does not
// look at whether targets, tasks and files exist.
func (s Spec) Check() error {
	if err := s.checkParts(); err != nil {
		return err
	}
	if s.Environment != "" {
		if _, err := fleet.ParseEnvironment(string(s.Environment)); err != nil {
			return err
		}
	}
	switch {
	case len(s.Description) > MaxDescriptionBytes || !plain(s.Description):
		return bad("description", "it has at most %d bytes of UTF-8 text", MaxDescriptionBytes)
	case len(s.Userdata) > MaxUserdataBytes || !isObject(s.Userdata):
		return bad("userdata", "it is an object of at most %d bytes", MaxUserdataBytes)
	case s.Concurrency < 0:
		return bad("concurrency", "it must not be negative; 0 means no limit")
	case s.MaxFailures != nil && *s.MaxFailures < 0:
		return bad("max_failures", "it must not be negative; leave it out for no budget")
	case s.Timeout < 0 || s.Timeout > MaxTime || s.Timeout > 0 && s.Timeout < time.Second:
		return bad("timeout", "it is between 1s and %s; leave it out for the server's default", MaxTime)
	case s.WaitOffline < 0 || s.WaitOffline > MaxTime:
		return bad("wait_offline", "it is between 0 and %s", MaxTime)
	}
	return s.Targets.check()
}

// checkParts checks that exactly the kind's part is there, and that part.
func (s Spec) checkParts() error {
	parts := map[Kind]bool{
		Puppet: s.Puppet != nil, Task: s.Task != nil, Command: s.Command != nil, Script: s.Script != nil, File: s.File != nil, Action: s.Action != nil,
	}
	there := 0
	for _, is := range parts {
		if is {
			there++
		}
	}
	if !parts[s.Kind] || there != 1 {
		return bad("kind", "it is puppet, task, action, command, script or file, and says which one part there is")
	}
	switch s.Kind {
	case Puppet:
		return s.Puppet.check()
	case Task:
		return s.Task.check()
	case Command:
		return checkText("command", s.Command.Command)
	case Script:
		return s.Script.check()
	case File:
		return s.File.check()
	case Action:
		return s.Action.check()
	}
	return nil
}

func (t Targets) check() error {
	if t.none() {
		return bad("targets", "it names nobody: give nodes, group, query, app or all")
	}
	if len(t.Nodes) > MaxTargets || len(t.Exclude) > MaxTargets {
		return bad("targets", "at most %d nodes can be named", MaxTargets)
	}
	if len(t.Query) > MaxTextBytes || len(t.Group) > MaxDescriptionBytes || len(t.App) > MaxDescriptionBytes {
		return bad("targets", "a query has at most %d bytes, a group and an application at most %d", MaxTextBytes, MaxDescriptionBytes)
	}
	if t.Filter != nil {
		if _, err := filter.Parse(*t.Filter); err != nil {
			return err
		}
	}
	for _, node := range slices.Concat(t.Nodes, t.Exclude) {
		if _, err := fleet.ParseCertname(string(node)); err != nil {
			return err
		}
	}
	return nil
}

func (p PuppetSpec) check() error {
	if p.Noop && p.NoNoop {
		return bad("noop", "it contradicts no_noop")
	}
	if p.UseCachedCatalog && p.NoCachedCatalog {
		return bad("use_cached_catalog", "it contradicts no_cached_catalog")
	}
	if p.Ordering != "" && !slices.Contains([]string{"manifest", "title-hash", "random"}, p.Ordering) {
		return bad("ordering", "it is manifest, title-hash or random, not %.80q", p.Ordering)
	}
	for flag, seconds := range p.times() {
		if seconds != nil && (*seconds < 0 || *seconds > int(MaxTime/time.Second)) {
			return bad(strings.TrimPrefix(flag, "--"), "it is 0 to %d seconds", int(MaxTime/time.Second))
		}
	}
	if len(p.Tags) > MaxTags || len(p.SkipTags) > MaxTags {
		return bad("tags", "at most %d can be given", MaxTags)
	}
	for _, tag := range slices.Concat(p.Tags, p.SkipTags) {
		if !isFlagValue(tag) || strings.Contains(tag, ",") {
			return bad("tags", "%.80q is not a tag: 1 to %d letters, digits and _:.- that do not begin with a dash", tag, pxp.MaxNameBytes)
		}
	}
	return nil
}

// isFlagValue says whether agents take a text as the value of a flag: they look at each character.
func isFlagValue(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("_:,.-", rune(c)) {
			return false
		}
	}
	return s != "" && s[0] != '-' && len(s) <= pxp.MaxNameBytes
}

func (t TaskSpec) check() error {
	switch {
	case t.Name == "" || len(t.Name) > pxp.MaxNameBytes || !plain(t.Name):
		return bad("task", "its name has 1 to %d bytes", pxp.MaxNameBytes)
	case len(t.Files) == 0 || len(t.Files) > pxp.MaxFiles:
		return bad("task", "it has 1 to %d files", pxp.MaxFiles)
	case len(t.Parameters)+len(t.Secret) > MaxParameterBytes:
		return bad("parameters", "they have at most %d bytes", MaxParameterBytes)
	}
	if !isObject(t.Parameters) || !isObject(t.Secret) {
		return bad("parameters", "they must be an object")
	}
	return checkFiles("task", t.Files...)
}

func (a ActionSpec) check() error {
	for field, name := range map[string]string{"module": a.Module, "action": a.Action} {
		if name == "" || len(name) > pxp.MaxNameBytes || !plain(name) {
			return bad(field, "it has 1 to %d bytes", pxp.MaxNameBytes)
		}
	}
	if len(a.Input) > MaxParameterBytes || !isObject(a.Input) {
		return bad("input", "it is an object of at most %d bytes", MaxParameterBytes)
	}
	return nil
}

func (s ScriptSpec) check() error {
	if len(s.Arguments) > MaxArguments {
		return bad("arguments", "at most %d can be given", MaxArguments)
	}
	for _, argument := range s.Arguments {
		if len(argument) > MaxTextBytes || !plain(argument) {
			return bad("arguments", "each has at most %d bytes of UTF-8 text without a byte 0", MaxTextBytes)
		}
	}
	return checkFiles("script", s.Script)
}

func (f FileSpec) check() error {
	if len(f.Entries) == 0 || len(f.Entries) > pxp.MaxFiles {
		return bad("file", "it has 1 to %d entries", pxp.MaxFiles)
	}
	for _, entry := range f.Entries {
		if !isTarget(entry.Destination) {
			return bad("destination", "%.80q is not an absolute path", entry.Destination)
		}
		switch entry.Kind {
		case "file":
			if err := checkFiles("file", entry.File); err != nil {
				return err
			}
		case "directory":
		case "symlink":
			if err := checkText("link_source", entry.LinkSource); err != nil {
				return err
			}
		default:
			return bad("kind", "an entry is a file, directory or symlink, not %.40q", entry.Kind)
		}
	}
	return nil
}

// isTarget says whether a path is absolute on some system.
func isTarget(s string) bool {
	drive := len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
	return (path.IsAbs(s) || drive) && len(s) <= 4096 && plain(s)
}

func checkFiles(field string, files ...FileRef) error {
	for _, f := range files {
		if _, err := fleet.ParseDigest(string(f.Digest)); err != nil {
			return err
		}
		if f.Name == "" || len(f.Name) > 1000 || !plain(f.Name) || strings.HasPrefix(f.Name, "/") || slices.Contains(strings.Split(f.Name, "/"), "..") {
			return bad(field, "the file name %.80q is not a relative path of at most 1000 bytes", f.Name)
		}
	}
	return nil
}

func checkText(field, text string) error {
	if strings.TrimSpace(text) == "" || len(text) > MaxTextBytes || !plain(text) {
		return bad(field, "it has 1 to %d bytes of UTF-8 text without a byte 0", MaxTextBytes)
	}
	return nil
}

// isObject says whether a text is a JSON object, or empty.
func isObject(text json.RawMessage) bool {
	var object map[string]json.RawMessage
	return len(text) == 0 || json.Unmarshal(text, &object) == nil && object != nil
}

func plain(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func bad(field, format string, args ...any) error {
	return fault.New(fault.Invalid, "field "+field+": "+format, args...)
}
