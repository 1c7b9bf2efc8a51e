package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestShortNamesOfExtensionsAreRead(t *testing.T) {
	t.Parallel()
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "custom_trusted_oid_mapping.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	names := func(path string) (map[string]string, error) {
		c := Default()
		c.TrustedOIDMappingFile = path
		return c.OIDNames()
	}
	got, err := names(write("---\noid_mapping:\n  1.3.6.1.4.1.34380.1.2.1.1:\n    shortname: 'rack'\n    longname: 'The rack'\n" +
		"  '1.3.6.1.4.1.34380.1.2.1.2':\n    shortname: row\n"))
	if diff := cmp.Diff(map[string]string{"1.3.6.1.4.1.34380.1.2.1.1": "rack", "1.3.6.1.4.1.34380.1.2.1.2": "row"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := names(""); got != nil || err != nil {
		t.Errorf("no file: %v, %v", got, err)
	}
	for _, path := range []string{write("a: [1"), write("oids: {}"), write("oid_mapping: [1]"), filepath.Join(t.TempDir(), "none.yaml")} {
		if _, err := names(path); fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), "trusted_oid_mapping_file") {
			t.Errorf("%s: %v, want Invalid that names the setting", path, err)
		}
	}
}

func TestPuppetSettingsAreChecked(t *testing.T) {
	t.Parallel()
	good := Default()
	good.PuppetStrict, good.PuppetStrictVariables = "error", "true"
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	got, err := good.PuppetSettings()
	if err != nil || got.Strict != "error" || got.StrictVariables == nil || !*got.StrictVariables || got.Certname == "" {
		t.Errorf("%+v, %v", got, err)
	}
	good.PuppetStrictVariables = "false"
	if got, err := good.PuppetSettings(); err != nil || got.StrictVariables == nil || *got.StrictVariables {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Default().PuppetSettings(); err != nil || got.StrictVariables != nil {
		t.Errorf("what nobody chose is not left to Puppet: %+v, %v", got, err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.PuppetStrict = "very" },
		func(c *Config) { c.PuppetStrictVariables = "yes" },
		func(c *Config) { c.PuppetHieraConfig = "hiera.yaml" },
		func(c *Config) { c.TrustedOIDMappingFile = "oids.yaml" },
	} {
		c := Default()
		change(&c)
		if err := c.Check(); fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%v, want Invalid", err)
		}
	}
	good.PuppetHieraConfig = filepath.Join(t.TempDir(), "hiera.yaml")
	if _, err := good.PuppetSettings(); fault.Of(err) != fault.Invalid || err == nil {
		t.Errorf("a global hiera.yaml that is not there: %v, want Invalid", err)
	}
}
