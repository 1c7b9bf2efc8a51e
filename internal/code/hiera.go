package code

import (
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"strings"
)

// hieraLevel is a level of a hierarchy: which files it reads, and how.
type hieraLevel struct {
	kind  SourceKind
	paths []string // below the directory of the hiera.yaml; \x00 stands for what is put in when it is looked up
}

// defaultHiera is what holds where there is no hiera.yaml, or where it names no hierarchy.
var defaultHiera = []hieraLevel{{YAMLSource, []string{"data/common.yaml"}}}

// hieraEntry is a level, and the defaults, as version 5 of hiera.yaml has them.
type hieraEntry struct {
	Datadir     string   `json:"datadir"`
	DataHash    string   `json:"data_hash"`
	LookupKey   string   `json:"lookup_key"`
	DataDig     string   `json:"data_dig"`
	Path        string   `json:"path"`
	Paths       []string `json:"paths"`
	Glob        string   `json:"glob"`
	Globs       []string `json:"globs"`
	MappedPaths []string `json:"mapped_paths"`
}

// hieraKinds is how the functions of Puppet, and of hiera-eyaml, read a file. What other functions do with theirs is not known.
var hieraKinds = map[string]SourceKind{"yaml_data": YAMLSource, "eyaml_lookup_key": YAMLSource, "json_data": JSONSource}

// readHiera finds the levels of a hiera.yaml. One that cannot be understood names nothing: Puppet says what is wrong with it.
func readHiera(text []byte, toJSON func([]byte) ([]byte, error)) []hieraLevel {
	document, err := toJSON(text)
	if err != nil {
		return nil
	}
	var config struct {
		Defaults         hieraEntry   `json:"defaults"`
		Hierarchy        []hieraEntry `json:"hierarchy"`
		DefaultHierarchy []hieraEntry `json:"default_hierarchy"`
	}
	if json.Unmarshal(document, &config) != nil {
		return nil
	}
	if config.Hierarchy == nil && config.DefaultHierarchy == nil {
		return defaultHiera
	}
	var levels []hieraLevel
	for _, e := range append(config.Hierarchy, config.DefaultHierarchy...) {
		if level := e.level(config.Defaults); len(level.paths) > 0 && level.kind != "" {
			levels = append(levels, level)
		}
	}
	return levels
}

func (e hieraEntry) level(defaults hieraEntry) hieraLevel {
	function := cmp.Or(e.DataHash, e.LookupKey, e.DataDig)
	if function == "" {
		function = cmp.Or(defaults.DataHash, defaults.LookupKey, defaults.DataDig, "yaml_data")
	}
	names := append([]string{}, e.Paths...)
	for _, glob := range append(append([]string{}, e.Globs...), e.Glob) {
		names = append(names, wildcards.ReplaceAllString(glob, "\x00"))
	}
	if len(e.MappedPaths) == 3 {
		names = append(names, e.MappedPaths[2])
	}
	level := hieraLevel{kind: hieraKinds[function]}
	datadir := cmp.Or(e.Datadir, defaults.Datadir, "data")
	for _, name := range append(names, e.Path) {
		if name != "" {
			level.paths = append(level.paths, interpolations.ReplaceAllString(datadir+"/"+name, "\x00"))
		}
	}
	return level
}

var (
	interpolations = regexp.MustCompile(`%\{[^}]*\}`)
	wildcards      = regexp.MustCompile(`[*?\[{].*`) // a glob matches less than this
)

// each visits the paths of a level below a directory: the directory, or file, up to which a path is fixed, and what tells files that it may
// name. Paths that lead out of the environment name nothing here.
func (l hieraLevel) each(dir string, visit func(top string, matches func(string) bool)) {
	for _, p := range l.paths {
		if path.IsAbs(p) {
			continue
		}
		whole := path.Join(dir, p)
		if whole == ".." || strings.HasPrefix(whole, "../") {
			continue
		}
		top, _, open := strings.Cut(whole, "\x00")
		if open {
			top, _ = path.Split(top)
			top = strings.TrimSuffix(top, "/")
		}
		form := regexp.MustCompile(`\A` + strings.ReplaceAll(regexp.QuoteMeta(whole), "\x00", ".*") + `\z`)
		visit(top, form.MatchString)
	}
}
