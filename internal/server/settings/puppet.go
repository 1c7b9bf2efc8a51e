package settings

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/yamljson"
)

// PuppetSettings are Puppet's own settings for all compiles.
func (c Config) PuppetSettings() (ruby.Settings, error) {
	if c.PuppetHieraConfig != "" {
		if _, err := os.ReadFile(c.PuppetHieraConfig); err != nil {
			return ruby.Settings{}, Bad("puppet_hiera_config", "%s", plainly(err))
		}
	}
	return ruby.Settings{
		Certname: ServerName(), Strict: c.PuppetStrict, StrictVariables: choice(c.PuppetStrictVariables), HieraConfig: c.PuppetHieraConfig,
	}, nil
}

// choice is a checked setting that is true, false or left to Puppet.
func choice(text string) *bool {
	if text == "" {
		return nil
	}
	return new(text == "true")
}

// OIDNames reads Puppet's file of that form: oid_mapping, from object identifier to a
// shortname, among others.
func (c Config) OIDNames() (map[string]string, error) {
	const setting = "trusted_oid_mapping_file"
	path := c.TrustedOIDMappingFile
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Bad(setting, "%s", plainly(err))
	}
	if text, err = yamljson.ToJSON(text); err != nil {
		return nil, Bad(setting, "%s: %s", path, fault.Detail(err))
	}
	var file struct {
		Mapping map[string]struct{ Shortname string } `json:"oid_mapping"`
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Mapping) == 0 {
		return nil, Bad(setting, "%s has no oid_mapping like {1.3.6.1.4.1.34380.1.2.1.1: {shortname: myname}}", path)
	}
	names := map[string]string{}
	for oid, is := range file.Mapping {
		names[oid] = is.Shortname
	}
	return names, nil
}

// plainly is what the system says of a file.
func plainly(err error) string {
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return failed.Path + ": " + failed.Err.Error()
	}
	return err.Error()
}
