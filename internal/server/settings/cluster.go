package settings

import (
	"slices"
	"strings"
)

// What one of several servers does.
const (
	API       = "api"       // people and programs: Tutti's own API, those of Puppet Enterprise and PuppetDB, the console
	Broker    = "broker"    // the channel to agents
	Compiler  = "compiler"  // compiling what is wanted
	Content   = "content"   // catalogs, files, facts and reports of nodes
	CA        = "ca"        // certificates
	Scheduler = "scheduler" // what is done once, under leases
)

// AllRoles is what a server does when nothing is said.
func AllRoles() []string { return []string{API, Broker, Compiler, Content, CA, Scheduler} }

// frontRoles are those of a server that nodes and people reach. They are not told apart so far.
func frontRoles() []string { return []string{API, Broker, Content, CA} }

// Does tells whether this server has a role.
func (c Config) Does(role string) bool { return len(c.Roles) == 0 || slices.Contains(c.Roles, role) }

// Front tells whether nodes and people may ask this server.
func (c Config) Front() bool { return c.Does(API) }

// checkCluster returns an Invalid fault for settings of one of several servers that cannot be used.
func (c Config) checkCluster() error {
	for _, role := range c.Roles {
		if !slices.Contains(AllRoles(), role) {
			return Bad("roles", "%q is none of %s", role, strings.Join(AllRoles(), ", "))
		}
	}
	front := slices.DeleteFunc(frontRoles(), func(role string) bool { return !c.Does(role) })
	switch {
	case len(front) > 0 && len(front) < len(frontRoles()):
		return Bad("roles", "%s go together so far: give all of them, or none", strings.Join(frontRoles(), ", "))
	case len(c.Roles) > 0 && !c.Cluster && !slices.Equal(slices.Sorted(slices.Values(c.Roles)), slices.Sorted(slices.Values(AllRoles()))):
		return Bad("roles", "a server that is alone does everything; for one of several set cluster: true")
	case c.ClusterKeyFile != "" && !strings.HasPrefix(c.ClusterKeyFile, "/"):
		return Bad("cluster_key_file", "%q is not the absolute path of a file", c.ClusterKeyFile)
	case c.Cluster && c.Database == "":
		return Bad("cluster", "SQLite has one server; for several, keep records in PostgreSQL (database: postgres://USER@HOST/NAME): see docs/many-servers.md")
	case c.Cluster && !c.BlobsElsewhere():
		return Bad("cluster",
			"content in the data directory is one server's; for several, keep it in an S3 store (blobs: s3://BUCKET/PREFIX): see docs/many-servers.md")
	}
	return c.checkNear()
}

// checkNear returns an Invalid fault for a server near its nodes that could not do what it is for.
func (c Config) checkNear() error {
	switch {
	case !c.Near:
		return nil
	case !c.Cluster:
		return Bad("near", "only one of several servers can be far from the database: set cluster, too")
	case !c.Front():
		return Bad("near", "nodes must reach such a server: give it the roles %s", strings.Join(frontRoles(), ", "))
	case c.Does(Scheduler):
		return Bad("near", "what is done once must not depend on a way that is cut now and then: leave the role scheduler to other servers (roles: [%s, %s])",
			strings.Join(frontRoles(), ", "), Compiler)
	}
	return nil
}
