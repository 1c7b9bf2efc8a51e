package fleetgen

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// The data that is queried: a fact set of three hundred leaves with several
// operating systems, roles and places.

// system is an operating system of the fleet.
type system struct {
	name, family, major, full, codename string
}

var systems = []system{
	{"Debian", "Debian", "12", "12.5", "bookworm"},
	{"Debian", "Debian", "11", "11.9", "bullseye"},
	{"Ubuntu", "Debian", "22.04", "22.04", "jammy"},
	{"RedHat", "RedHat", "9", "9.3", "Plow"},
	{"RedHat", "RedHat", "8", "8.9", "Ootpa"},
	{"Rocky", "RedHat", "9", "9.3", "Blue Onyx"},
}

var roles = []string{"web", "db", "cache", "queue", "proxy", "ci", "mail", "backup"}

func (f Fleet) system(node int) system {
	return systems[f.random(kindSystem, node, 0).IntN(len(systems))]
}

func role(node int) string { return roles[node%len(roles)] }

// WideFacts are a node's facts with more to ask for than [Fleet.Facts] has.
func (f Fleet) WideFacts(node int) map[string]any {
	facts := f.Facts(node, 0)
	r := f.random(kindWide, node, 0)
	s, certname := f.system(node), f.Certname(node)
	facts["os"] = object{
		"name": s.name, "family": s.family, "architecture": "amd64", "hardware": "x86_64", "selinux": object{"enabled": s.family == "RedHat"},
		"release": object{"full": s.full, "major": s.major},
		"distro":  object{"codename": s.codename, "id": s.name, "release": object{"full": s.full, "major": s.major}},
	}
	facts["operatingsystem"], facts["osfamily"] = s.name, s.family
	facts["operatingsystemrelease"], facts["operatingsystemmajrelease"] = s.full, s.major
	facts["role"], facts["datacenter"] = role(node), fmt.Sprintf("dc%d", r.IntN(6)+1)
	facts["processorcount"] = []int{2, 4, 8, 16, 32, 64}[r.IntN(6)]
	facts["memorysize_mb"] = float64(int(1)<<(10+r.IntN(8))) - 0.25
	facts["site"], facts["listening"] = site(r), listening(r)
	facts["apt_updates"] = r.IntN(60)
	facts["reboot_required"] = r.IntN(20) == 0
	facts["trusted"] = object{
		"authenticated": "remote", "certname": certname, "hostname": certname[:len(certname)-len(".example.org")], "domain": "example.org",
		"extensions": object{"pp_role": role(node), "pp_environment": []string{"production", "staging"}[node/7%2], "pp_datacenter": facts["datacenter"]},
		"external":   object{},
	}
	return facts
}

// site is what a site keeps about its machines.
func site(r *rand.Rand) object {
	var teams []string
	for range 2 {
		teams = append(teams, fmt.Sprintf("team-%02d", r.IntN(30)))
	}
	return object{
		"cost_center": 4000 + r.IntN(50), "tier": []string{"gold", "silver", "bronze"}[r.IntN(3)], "teams": teams,
		"patch":   object{"window": fmt.Sprintf("sun-%02d", r.IntN(24)), "group": r.IntN(10), "blocked": r.IntN(10) == 0},
		"contact": object{"mail": fmt.Sprintf("team-%02d@example.org", r.IntN(30))},
	}
}

// listening is what answers on a machine.
func listening(r *rand.Rand) object {
	out := object{}
	for i, name := range []string{"sshd", "nginx", "postgres", "redis", "exim", "ntpd", "puppet", "node_exporter", "rsyslogd", "haproxy"} {
		out[name] = object{"port": 1000*i + 22, "version": fmt.Sprintf("%d.%d.%d", i+1, r.IntN(4), r.IntN(10)), "running": r.IntN(12) > 0}
	}
	return out
}

// WidePuppetDBFacts is the payload of `replace facts` version 5.
func (f Fleet) WidePuppetDBFacts(node int) []byte {
	return marshal(object{
		"certname": f.Certname(node), "environment": environment(node), "producer": producer,
		"producer_timestamp": f.When(node, 0).Format(time.RFC3339Nano), "values": f.WideFacts(node),
	})
}

const producer = "server.example.org"

func environment(node int) string {
	return []string{"production", "production", "production", "staging"}[node/11%4]
}
