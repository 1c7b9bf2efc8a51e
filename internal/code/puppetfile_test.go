package code_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
)

func TestMissingModules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		puppetfile string
		files      map[string]string
		opt        code.BuildOptions
		want       []string
	}{
		"none is there": {
			puppetfile: "forge 'https://forge.example.test'\n\nmod 'puppetlabs/stdlib', '9.4.1'\nmod \"puppetlabs-apt\"\nmod 'own'\nmod('a/bracketed', :latest)\n",
			want:       []string{"puppetlabs/stdlib", "puppetlabs-apt", "own", "a/bracketed"},
		},
		"some are there": {
			puppetfile: "mod 'puppetlabs/stdlib'\nmod 'puppetlabs/apt'\n",
			files:      map[string]string{"modules/stdlib/metadata.json": "{}"}, want: []string{"puppetlabs/apt"},
		},
		"an empty directory is none": {puppetfile: "mod 'a/b'\n", files: map[string]string{"modules/b/": ""}, want: []string{"a/b"}},
		"on the module path": {
			puppetfile: "mod 'a/b'\nmod 'a/c'\n",
			files:      map[string]string{"environment.conf": "modulepath = site:modules\n", "site/b/x": "", "vendor/c/x": "", "modules/c@": "../vendor/c"},
		},
		"its own directory of modules": {
			puppetfile: "mod 'a/early'\nmoduledir 'thirdparty'\nmod 'a/b'\nmod 'a/c'\n",
			files:      map[string]string{"thirdparty/b/x": "", "thirdparty/early/x": ""}, want: []string{"a/early", "a/c"},
		},
		"a path of its own": {
			puppetfile: "mod 'a/b',\n  :git => 'https://git.example.test/b', # the newest\n  :install_path => 'external'\nmod 'c', git: 'x', install_path: 'external'\n",
			files:      map[string]string{"external/b/x": ""}, want: []string{"c"},
		},
		"over several lines": {
			puppetfile: "mod 'a/b',\n\n  git: 'https://git.example.test/if.git',\n  branch: 'unless'\nmod 'c', {\n  'git' => 'x',\n}\nmod \\\n  'd'\n",
			want:       []string{"a/b", "c", "d"},
		},
		"left alone": {
			puppetfile: "# mod 'comment/one'\n=begin\nmod 'comment/two'\n=end\nversion = \"mod 'text/one'\"\nmod \"#{owner}/x\"\nmod name\n" +
				"mod 'perhaps/one', '1' if ENV['X']\nif File.exist?('y')\n  mod 'perhaps/two'\nelse\n  mod 'perhaps/three'\nend\n" +
				"%w[a b].each do |name|\n  mod 'perhaps/four'\nend\n[1].each { |n|\n  mod 'perhaps/five'\n}\nmod 'bad/Name'\nmod 'a/b/c'\n" +
				"mod 'far', install_path: '/opt/modules'\nmod 'near', install_path: where\ntext = <<~TEXT\n  mod 'text/two'\nTEXT\n" +
				"mod 'a/last'; mod 'a/more'\n__END__\nmod 'text/three'\n",
			want: []string{"a/last", "a/more"},
		},
		"no end":       {puppetfile: "mod 'a/b'\nmod 'c\n", want: []string{"a/b"}},
		"named twice":  {puppetfile: "mod 'a/b'\nmod 'a/b'\n", want: []string{"a/b"}},
		"empty":        {puppetfile: "\n"},
		"no ruby":      {puppetfile: "\x00\xff<< ]]]}}} \\\n"},
		"among others": {puppetfile: "mod 'a/b'\n", opt: code.BuildOptions{BaseModulePath: []string{"base"}}, want: []string{"a/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFiles(t, dir, tt.files)
			writeFiles(t, dir, map[string]string{"Puppetfile": tt.puppetfile})
			got, err := build(t, dir, tt.opt).MissingModules()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMissingModulesOfTheBase(t *testing.T) {
	t.Parallel()
	base, dir := t.TempDir(), t.TempDir()
	writeFiles(t, base, map[string]string{"stdlib/x": ""})
	writeFiles(t, dir, map[string]string{"Puppetfile": "mod 'puppetlabs/stdlib'\nmod 'puppetlabs/apt'\n"})
	got, err := build(t, dir, code.BuildOptions{BaseModulePath: []string{base}}).MissingModules()
	if diff := cmp.Diff([]string{"puppetlabs/apt"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	without := t.TempDir()
	writeFiles(t, without, map[string]string{"manifests/site.pp": ""})
	if got, err := build(t, without, code.BuildOptions{}).MissingModules(); got != nil || err != nil {
		t.Errorf("without a Puppetfile: %v, %v", got, err)
	}
}

func FuzzPuppetfile(f *testing.F) {
	f.Add("mod 'a/b', '1'\n")
	f.Add("x = <<~A\nA\nmod(\"b\") do\nend")
	f.Fuzz(func(_ *testing.T, text string) { code.ReadPuppetfile(text) })
}
