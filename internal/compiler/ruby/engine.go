package ruby

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// installation is what an installation of Puppet was found to be.
type installation struct {
	interpreter  string
	name         string   // what Pool.Engine says
	puppet, ruby string   // versions
	by           string   // whose Puppet it is: puppet or openvox
	places       []string // directories of its code and libraries
	jit          []string // arguments that switch the just-in-time compiler on
	files        files    // as they were then
}

// supply gives what a process for a version is started with.
type supply func(ctx context.Context, env fleet.Environment, version fleet.Digest) (Config, *installation, error)

// supplied is the supply of a configuration with one installation.
func supplied(cfg Config) supply {
	return func(context.Context, fleet.Environment, fleet.Digest) (Config, *installation, error) {
		interpreter, err := cfg.interpreter()
		return cfg, &installation{interpreter: interpreter}, err
	}
}

// question is the Ruby that an installation is asked for its identity with. Its clock is asked for a century and a half of a zone's
// rules: catalogs depend on them. Its arguments are the engine's directories of gems: a gem whose C extension was built for another Ruby alone is named, as
// RubyGems would pass it over, and Puppet without it is another one.
const question = `require "json"; require "rbconfig"; require "puppet/version"
gems = ARGV.flat_map { |dir| Dir[File.join(dir, "specifications", "*.gemspec")].map { |path| [dir, Gem::Specification.load(path)] } }.select(&:last)
built, unbuilt = gems.partition { |_, gem| !gem.missing_extensions? }
unbuilt.reject! { |_, gem| built.any? { |_, other| other.name == gem.name } }
foreign = unbuilt.map do |dir, gem|
  { "name" => gem.name, "version" => gem.version.to_s, "dir" => dir,
    "for" => Dir[File.join(dir, "extensions", "*", "*", gem.full_name)].map { |path| File.basename(File.dirname(path)) }.sort.uniq }
end
zone = 1700.times.map { |month| time = Time.at(month * 2_629_746); [time.utc_offset, time.zone] }
mapped = File.exist?("/proc/self/maps") ? File.readlines("/proc/self/maps").map { |line| line[%r{ (/\S+)$}, 1] }.compact.uniq : []
by = Puppet.respond_to?(:implementation) ? Puppet.implementation : "puppet"
puts JSON.generate("puppet" => Puppet.version, "by" => by, "ruby" => RUBY_VERSION, "patch" => RUBY_PATCHLEVEL, "zone" => zone,
  "home" => $LOADED_FEATURES.grep(%r{/puppet/version\.rb\z}).map { |path| File.dirname(path, 2) }.last,
  "load" => $LOAD_PATH.map(&:to_s), "gems" => defined?(Gem) ? Gem.path : [], "mapped" => mapped, "foreign" => foreign)`

// told is the answer.
type told struct {
	Puppet string          `json:"puppet"`
	By     string          `json:"by"` // OpenVox says it
	Ruby   string          `json:"ruby"`
	Patch  int             `json:"patch"`
	Zone   json.RawMessage `json:"zone"`
	Home   string          `json:"home"`
	Load   []string        `json:"load"`
	Gems   []string        `json:"gems"`
	Mapped []string        `json:"mapped"` // files in the interpreter's memory: it, and libraries

	Foreign []foreignGem `json:"foreign"` // of the engine's directories of gems, those that this Ruby cannot load
}

// foreignGem is a gem with a C extension that is not built for the Ruby that is to load it.
type foreignGem struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Dir     string   `json:"dir"`
	For     []string `json:"for"` // the Rubies that it is built for
}

// maxForeign is how many others of these gems are named.
const maxForeign = 10

// refuse says what is wrong with the first gem that the Ruby cannot load, and what to do; nil if it can load all.
func (t told) refuse(interpreter string) error {
	if len(t.Foreign) == 0 {
		return nil
	}
	g := t.Foreign[0]
	built := "is not built"
	if len(g.For) > 0 {
		built = "is built for Ruby " + strings.Join(g.For, " and ")
	}
	others := make([]string, len(t.Foreign)-1)
	for i, other := range t.Foreign[1:] {
		others[i] = other.Name + " " + other.Version
	}
	more := ""
	if len(others) > 0 {
		more = " (the same is true of " + strings.Join(others[:min(len(others), maxForeign)], ", ") + ")"
	}
	return fault.New(fault.Unavailable,
		"the C extension of the gem %s %s in %s %s, and %s is Ruby %s%s; install the gem with this Ruby: %s -S gem install --install-dir %s %s -v %s, "+
			"or name the Ruby that it is built for in the setting engines", g.Name, g.Version, g.Dir, built, interpreter, t.Ruby, more, interpreter,
		g.Dir, g.Name, g.Version)
}

// identify asks the installation of a configuration what it is. NotFound if there is none, Unavailable if it cannot be used: both say why.
func identify(ctx context.Context, cfg Config) (*installation, error) {
	interpreter, err := cfg.interpreter()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(interpreter); err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "there is no Ruby at %s", interpreter)
	}
	t, err := interview(ctx, cfg, interpreter)
	if err != nil {
		return nil, err
	}
	if err := t.refuse(interpreter); err != nil {
		return nil, err
	}
	found := &installation{interpreter: interpreter, puppet: t.Puppet, ruby: t.Ruby, by: t.By, places: t.places()}
	if found.files, err = look(interpreter, t.roots(), t.Home); err != nil {
		return nil, err
	}
	if !cfg.NoJIT {
		found.jit = jit(ctx, interpreter, os.TempDir())
	}
	if found.changed() {
		return nil, fault.New(fault.Unavailable, "the files of %s are being exchanged", interpreter)
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\n%s\n", t.Zone, found.files.everywhere)
	if err := cfg.Settings.write(sum); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintln(sum, cfg.Granted)
	for _, variable := range environ("") {
		_, _ = fmt.Fprintln(sum, variable)
	}
	if err := writeCode(sum); err != nil {
		return nil, err
	}
	found.name = fmt.Sprintf("%s %s, ruby %s %d, %s", t.By, t.Puppet, t.Ruby, t.Patch, hex.EncodeToString(sum.Sum(nil))[:12])
	return found, nil
}

func interview(ctx context.Context, cfg Config, interpreter string) (t told, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	//nolint:gosec // the interpreter is the operator's choice
	cmd := exec.CommandContext(ctx, interpreter, slices.Concat(cfg.load(), []string{"-e", question, "--"}, cfg.Gems)...)
	cmd.Env = cfg.gems(Grants{}).environ(os.TempDir())
	said := &firstLine{}
	cmd.Stderr = said
	out, err := cmd.Output()
	if err != nil {
		return t, fault.Wrap(fault.Unavailable, err, "%s does not say which Puppet it has: %s", interpreter, said)
	}
	if err := json.Unmarshal(out, &t); err != nil || t.Puppet == "" || t.Home == "" {
		return t, fault.Wrap(fault.Unavailable, err, "%s does not say which Puppet it has, but %.200q", interpreter, out)
	}
	return t, nil
}

// writeCode writes our own part of the compiler.
func writeCode(to io.Writer) error {
	return fs.WalkDir(zygoteCode, "zygote", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := zygoteCode.ReadFile(path)
		_, _ = fmt.Fprintf(to, "%s %d\n%s", path, len(text), text)
		return err
	})
}

// write writes all that compilers take from s. Processes read a global hiera.yaml once.
func (s Settings) write(to io.Writer) error {
	chosen, err := json.Marshal(s)
	_, _ = fmt.Fprintf(to, "%s\n", chosen)
	if err != nil || s.HieraConfig == "" {
		return err
	}
	text, err := os.ReadFile(s.HieraConfig)
	_, _ = fmt.Fprintf(to, "%d\n%s", len(text), text)
	if err != nil {
		return fmt.Errorf("read the global hiera.yaml: %w", err)
	}
	return nil
}

// roots are the directories whose files make the engine: Ruby's and Puppet's own code, and the lists of gems.
func (t told) roots() []string {
	roots := slices.Clone(t.Load)
	for _, dir := range t.Gems {
		roots = append(roots, filepath.Join(dir, "specifications"))
	}
	return roots
}

// places are directories that a process of the engine reads, and whose libraries it runs.
func (t told) places() []string {
	places := slices.Concat(t.Load, t.Gems)
	for _, file := range t.Mapped {
		places = append(places, filepath.Dir(file))
	}
	places = slices.DeleteFunc(places, func(dir string) bool { return !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" })
	slices.Sort(places)
	return slices.Compact(places)
}

// files says what an engine's files are.
type files struct {
	roots      []string
	home       string // where Puppet itself lies
	everywhere string // a digest of their names below the roots, and of their sizes: the same on each machine
	here       string // with where they lie, and when they changed
	main       []string
	stamp      string // of main: the interpreter and the directories that an upgrade changes first
}

// The bounds of a look.
const (
	maxEngineFiles = 100_000
	maxMain        = 200
)

// look looks at an interpreter, and at all files below roots.
func look(interpreter string, roots []string, home string) (files, error) {
	f := files{roots: roots, home: home, main: append([]string{interpreter, home}, roots...)}
	everywhere, here := sha256.New(), sha256.New()
	count := 0
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what is not there is no file
			}
			if entry.IsDir() {
				if strings.HasPrefix(path, home+"/puppet") && len(f.main) < maxMain {
					f.main = append(f.main, path)
				}
				return nil
			}
			info, err := entry.Info()
			if err != nil {
				return nil //nolint:nilerr // as above
			}
			if count++; count > maxEngineFiles {
				return fault.New(fault.Unavailable, "%s has more than %d files in its load path", interpreter, maxEngineFiles)
			}
			_, _ = fmt.Fprintln(everywhere, strings.TrimPrefix(path, root), info.Size())
			_, _ = fmt.Fprintln(here, path, info.Size(), info.ModTime().UnixNano())
			return nil
		})
		if err != nil {
			return f, err
		}
	}
	f.stamp = stamp(f.main)
	_, _ = fmt.Fprintln(here, f.stamp)
	f.everywhere, f.here = hex.EncodeToString(everywhere.Sum(nil)), hex.EncodeToString(here.Sum(nil))
	return f, nil
}

// stamp says when files and directories changed.
func stamp(paths []string) string {
	var text strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			_, _ = fmt.Fprintln(&text, path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return text.String()
}

// touched says whether an upgrade of the installation has begun; it costs little.
func (i *installation) touched() bool { return stamp(i.files.main) != i.files.stamp }

// changed says whether any file of the installation is another one.
func (i *installation) changed() bool {
	now, err := look(i.interpreter, i.files.roots, i.files.home)
	return err != nil || now.here != i.files.here
}
