package settings

import (
	"strings"
	"testing"
)

// shared is settings of one of several servers.
func shared() Config {
	c := Default()
	c.Cluster, c.Database, c.Blobs, c.BlobsEndpoint, c.ClusterKeyFile = true, "postgres://tutti@db/tutti", "s3://tutti/content", "https://s3.test",
		"/etc/tutti/cluster.key"
	return c
}

func TestSettingsOfSeveralServers(t *testing.T) {
	t.Parallel()
	front := []string{API, Broker, Content, CA}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string // empty: it is good
	}{
		"one of several":           {func(*Config) {}, ""},
		"the key is in a variable": {func(c *Config) { c.ClusterKeyFile = "" }, ""},
		"everything, alone":        {func(c *Config) { *c = Default(); c.Roles = AllRoles() }, ""},
		"only compiling":           {func(c *Config) { c.Roles = []string{Compiler} }, ""},
		"only what is done once":   {func(c *Config) { c.Roles = []string{Scheduler} }, ""},
		"the front":                {func(c *Config) { c.Roles = front }, ""},
		"the front compiles":       {func(c *Config) { c.Roles = append([]string{Compiler}, front...) }, ""},
		"on SQLite":                {func(c *Config) { c.Database = "" }, "setting cluster: SQLite has one server; for several, keep records in PostgreSQL"},
		"content in the directory": {
			func(c *Config) { c.Blobs = "" }, "setting cluster: content in the data directory is one server's; for several, keep it in an S3 store",
		},
		"near its nodes":            {func(c *Config) { c.Near, c.Roles = true, []string{API, Broker, Content, CA, Compiler} }, ""},
		"near, with every role":     {func(c *Config) { c.Near = true }, "setting near: what is done once must not depend on a way that is cut now and then"},
		"near, and only compiling":  {func(c *Config) { c.Near, c.Roles = true, []string{Compiler} }, "setting near: nodes must reach such a server"},
		"near, and alone":           {func(c *Config) { c.Near, c.Cluster = true, false }, "setting near: only one of several servers"},
		"a key in no absolute path": {func(c *Config) { c.ClusterKeyFile = "cluster.key" }, "setting cluster_key_file"},
		"a role that there is not": {
			func(c *Config) { c.Roles = []string{"compiling"} }, `setting roles: "compiling" is none of api, broker, compiler, content, ca, scheduler`,
		},
		"a part of the front":          {func(c *Config) { c.Roles = []string{Broker, Compiler} }, "setting roles: api, broker, content, ca go together so far"},
		"one that is alone has a role": {func(c *Config) { *c = Default(); c.Roles = []string{Compiler} }, "setting roles: a server that is alone does everything"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := shared()
			c.change(&config)
			err := config.Check()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}
