package pdbdiff_test

import (
	"fmt"
	"time"
)

// factSet is a payload of replace_facts: every kind of value, at every depth.
func (n node) factSet(at time.Time) object {
	return object{
		"certname": n.certname, "environment": n.environment, "producer": n.producer, "producer_timestamp": stamp(at),
		"values": n.factValues(), "package_inventory": n.packages(),
	}
}

func (n node) factValues() object {
	cores := pick(n, 1, 2, 4, 8, 16)
	values := object{
		"kernel":       pick(n, "Linux", "Linux", "Linux", "FreeBSD", "windows"),
		"role":         n.role,
		"hostname":     n.certname[:len(n.certname)-len(".example.org")],
		"clientcert":   n.certname,
		"is_virtual":   n.index%3 == 0,
		"uptime_days":  n.index * 7 % 400,
		"load":         float64(n.index%40) / 8,
		"rate":         pick(n, 0.1, 2.5e-7, 1.5e20, -3.25),
		"motd":         "",
		"place":        pick(n, "Zürich", "東京", "São Paulo", "🚀 base"),
		"serial":       9007199254740993 + int64(n.index), // more than a float can hold
		"negative":     -n.index,
		"version_text": pick(n, "42", "42.0", "1e3", "007", "true"),
		"dotted.fact":  fmt.Sprintf("d%d", n.index%5),
		"quote\"d":     "says \"hi\" \\ bye",
		"no_flags":     []any{},
		"no_settings":  object{},
		"mixed":        n.mixed(),
		"os":           n.system(),
		"processors":   object{"count": cores, "physicalcount": 1, "models": repeat(cores, "Xeon "+pick(n, "E5", "Gold")), "speed": pick(n, "2.10 GHz", "3.00 GHz")},
		"memory": object{
			"system": object{"total_bytes": int64(cores) << 33, "capacity": fmt.Sprintf("%d.%02d%%", n.index%100, n.index%97), "used": float64(cores) * 0.75},
			"swap":   object{"encrypted": n.index%2 == 0},
		},
		"networking": n.networking(),
		"mountpoints": object{
			"/": object{"size_bytes": 1 << 34, "options": []any{"rw", "relatime"}}, "/var/lib/docker": object{"size_bytes": n.index << 30, "options": []any{"rw"}},
		},
		"trusted":       n.trusted(),
		"matrix":        []any{[]any{1, 2}, []any{3, []any{"deep", n.index % 4}}},
		"multi\nline":   "first\nsecond",
		"long":          fmt.Sprintf("%0300d", n.index),
		"case_Name":     "Mixed CASE " + n.role,
		"percent_%_a_b": "100%_done",
	}
	if n.index%4 == 0 {
		values["only_some"] = fmt.Sprintf("value %d", n.index)
		values["unset"] = nil
	}
	return values
}

// mixed is a fact whose type is another one on every node.
func (n node) mixed() any {
	kinds := [...]any{
		"text", n.index, float64(n.index) + 0.5, n.index%2 == 0, fmt.Sprint(n.index),
		[]any{n.index, "x"},
		object{"key": n.index},
		"", 1.0, 0,
	}
	return kinds[n.index%len(kinds)]
}

func (n node) system() object {
	family := pick(n, "Debian", "RedHat", "Suse")
	return object{
		"family": family, "name": family, "architecture": "amd64",
		"release": object{"major": fmt.Sprint(10 + n.index%4), "minor": fmt.Sprint(n.index % 3), "full": fmt.Sprintf("%d.%d", 10+n.index%4, n.index%3)},
		"selinux": object{"enabled": n.index%5 == 0},
	}
}

func (n node) networking() object {
	ip := fmt.Sprintf("10.%d.%d.%d", n.index%4, n.index/250, n.index%250+1)
	return object{
		"ip": ip, "fqdn": n.certname, "mtu": 1500, "primary": "eth0",
		"interfaces": object{
			"lo": object{"ip": "127.0.0.1", "bindings": []any{object{"address": "127.0.0.1", "netmask": "255.0.0.0"}}},
			"eth0": object{
				"ip": ip, "mac": fmt.Sprintf("52:54:00:00:00:%02x", n.index%256), "bindings": []any{
					object{"address": ip, "netmask": "255.255.0.0"}, object{"address": "192.0.2.1", "netmask": "255.255.255.0"},
				},
			},
			"eth0.100": object{"ip": nil, "mtu": 1400 + n.index%100},
		},
	}
}

func (n node) trusted() object {
	return object{
		"authenticated": "remote", "certname": n.certname, "hostname": n.certname[:len(n.certname)-len(".example.org")], "domain": "example.org",
		"extensions": object{"pp_role": n.role, "1.3.6.1.4.1.34380.1.2.1": fmt.Sprint(n.index % 6)}, "external": object{},
	}
}

func (n node) packages() []any {
	return []any{
		[]any{"openssl", pick(n, "3.0.1", "3.0.2", "1.1.1"), "apt"},
		[]any{"bash", "5.2", "apt"},
		[]any{"rake", fmt.Sprintf("13.%d", n.index%3), "gem"},
	}
}

func repeat(n int, text string) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = text
	}
	return list
}
