package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
)

func TestEnginesAreTakenFromSettingsAndTheMachine(t *testing.T) {
	t.Parallel()
	packaged, system := ruby.Engine{Name: ruby.Packaged, Ruby: "/opt/puppetlabs/puppet/bin/ruby"}, ruby.Engine{Name: ruby.System, Ruby: "/usr/bin/ruby"}
	p8 := ruby.Engine{Name: "p8", Ruby: "/opt/p8/bin/ruby"}
	withGems := p8
	withGems.Gems = []string{"/opt/gems", "/srv/gems"}
	for name, tt := range map[string]struct {
		change func(*Config)
		found  []ruby.Engine
		want   []ruby.Engine
	}{
		"nothing said":      {func(*Config) {}, []ruby.Engine{packaged, system}, []ruby.Engine{packaged, system}},
		"distribution only": {func(*Config) {}, []ruby.Engine{system}, []ruby.Engine{system}},
		"one more":          {func(c *Config) { c.Engines = []string{"p8:/opt/p8/bin/ruby"} }, []ruby.Engine{system}, []ruby.Engine{system, p8}},
		"the default":       {func(c *Config) { c.Engines, c.Engine = []string{"p8:/opt/p8/bin/ruby"}, "p8" }, []ruby.Engine{system}, []ruby.Engine{p8, system}},
		"one that is found": {func(c *Config) { c.Engine = "system" }, []ruby.Engine{packaged, system}, []ruby.Engine{system, packaged}},
		"ruby":              {func(c *Config) { c.Ruby = "/r" }, []ruby.Engine{system}, []ruby.Engine{{Name: "ruby", Ruby: "/r"}, system}},
		"ruby, not default": {func(c *Config) { c.Ruby, c.Engine = "/r", "system" }, []ruby.Engine{system}, []ruby.Engine{system, {Name: "ruby", Ruby: "/r"}}},
		"gems": {func(c *Config) {
			c.Engines, c.EngineGems = []string{"p8:/opt/p8/bin/ruby"}, []string{"p8:/opt/gems", "p8:/srv/gems"}
		}, []ruby.Engine{}, []ruby.Engine{withGems}},
		"another system Ruby": {
			func(c *Config) { c.Engines = []string{"system:/opt/p8/bin/ruby"} }, []ruby.Engine{system}, []ruby.Engine{{Name: "system", Ruby: "/opt/p8/bin/ruby"}},
		},
	} {
		c := Default()
		tt.change(&c)
		if name != "gems" { // whose engine is known by settings alone
			if err := c.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		got, err := c.EnginesWith(tt.found)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for word, change := range map[string]func(*Config){
		"not NAME:PATH":             func(c *Config) { c.Engines = []string{"/usr/bin/ruby"} },
		"not an absolute path":      func(c *Config) { c.Engines = []string{"p8:ruby"} },
		"a name has":                func(c *Config) { c.Engines = []string{"P8:/r"} },
		"the name default is taken": func(c *Config) { c.Engines = []string{"default:/r"} },
		"the name ruby is taken":    func(c *Config) { c.Engines = []string{"ruby:/r"} },
		"is given twice":            func(c *Config) { c.Engines = []string{"p8:/r", "p8:/s"} },
		"there is no engine p9":     func(c *Config) { c.EngineGems = []string{"p9:/r"} },
		`there is no engine "p7"`:   func(c *Config) { c.Engine = "p7" },
		"data directory":            func(c *Config) { c.Engines = []string{"p8:" + c.Data + "/ruby"} },
	} {
		c := Default()
		change(&c)
		if err := c.Check(); fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v, want Invalid that says %q", err, word)
		}
	}
	c := Default()
	c.EngineGems = []string{"system:/opt/gems"}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if got, err := c.EnginesWith([]ruby.Engine{system}); err != nil || len(got) != 1 || len(got[0].Gems) != 1 {
		t.Errorf("gems of an engine that is found: %+v, %v", got, err)
	}
	c = Default()
	c.Engine = ruby.Packaged
	if _, err := c.EnginesWith([]ruby.Engine{system}); fault.Of(err) != fault.Invalid || err == nil {
		t.Errorf("a default that is not there: %v, want Invalid", err)
	}
}
