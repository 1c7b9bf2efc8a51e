package ruby

import (
	"os"
	"testing"
)

// moreModules are compiled beside the stock compiler, each on a node of its own
// (testdata/modules), as Debian packs them.
var moreModules = []string{
	"alternatives", "archive", "chrony", "collectd", "corosync", "datacat", "dns", "etcd", "filebeat", "horizon", "ipaclient", "kmod",
	"memcached", "mongodb", "openssl", "openstacklib", "oslo", "postfix", "powerdns", "redis", "ssh", "sysctl", "systemd", "vswitch", "zookeeper",
}

func TestModulesEqualTheStockCompilers(t *testing.T) {
	t.Parallel()
	for _, name := range moreModules {
		if _, err := os.Stat(debianModules + "/" + name); err != nil {
			t.Fatalf("no Puppet module %s here: make test-deps", name)
		}
	}
	checkEqual(t, "modules", moreModules)
}
