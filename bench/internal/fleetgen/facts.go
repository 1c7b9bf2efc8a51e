package fleetgen

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// SerialFact names the fact that holds the generation, so that a reader can
// tell which set a server kept.
const SerialFact = "bench_serial"

// Facts are a node's facts in one generation.
func (f Fleet) Facts(node, generation int) map[string]any {
	name := f.Certname(node)
	facts := stable(f.random(kindStable, node, 0), name, node)
	volatile(f.random(kindVolatile, node, generation), facts, generation)
	facts[SerialFact] = generation
	return facts
}

// PuppetFacts is the body of PUT /puppet/v3/facts/NAME.
func (f Fleet) PuppetFacts(node, generation int) []byte {
	when := f.When(node, generation)
	return marshal(object{
		"name": f.Certname(node), "values": f.Facts(node, generation),
		"timestamp": when.Format(time.RFC3339Nano), "expiration": when.Add(30 * time.Minute).Format(time.RFC3339Nano),
	})
}

// PuppetDBFacts is the payload of the command `replace facts` version 5.
func (f Fleet) PuppetDBFacts(node, generation int) []byte {
	return marshal(object{
		"certname": f.Certname(node), "environment": "production", "producer": "server.example.org",
		"producer_timestamp": f.When(node, generation).Format(time.RFC3339Nano), "values": f.Facts(node, generation),
	})
}

func stable(r *rand.Rand, name string, node int) object {
	host := name[:len(name)-len(".example.org")]
	address := fmt.Sprintf("10.%d.%d.%d", node>>16&255, node>>8&255, node&255)
	facts := object{
		"clientcert": name, "clientversion": "7.23.0", "clientnoop": false, "fqdn": name, "hostname": host, "domain": "example.org",
		"kernel": "Linux", "kernelversion": "6.1.0", "kernelrelease": "6.1.0-18-amd64", "kernelmajversion": "6.1",
		"osfamily": "Debian", "operatingsystem": "Debian", "operatingsystemrelease": "12.5", "operatingsystemmajrelease": "12",
		"architecture": "amd64", "hardwaremodel": "x86_64", "timezone": "UTC", "virtual": "kvm", "is_virtual": true, "ipaddress": address,
		"facterversion": "4.3.0", "puppetversion": "7.23.0", "rubyversion": "3.1.2", "rubyplatform": "x86_64-linux-gnu", "path": "/usr/sbin:/usr/bin:/sbin:/bin",
		"augeas": object{"version": "1.14.0"}, "fips_enabled": false, "service_provider": "systemd", "package_provider": "apt",
		"uuid": uuid(r), "serialnumber": fmt.Sprintf("%012X", r.Uint64()>>16), "manufacturer": "QEMU", "productname": "Standard PC (Q35 + ICH9, 2009)",
		"dmi": object{
			"bios":    object{"release_date": "04/01/2014", "vendor": "SeaBIOS", "version": "1.16.2"},
			"chassis": object{"type": "Other"}, "manufacturer": "QEMU",
			"product": object{"name": "Standard PC (Q35 + ICH9, 2009)", "uuid": uuid(r), "serial_number": fmt.Sprintf("%010d", r.IntN(1e9))},
		},
		"os": object{
			"name": "Debian", "family": "Debian", "architecture": "amd64", "hardware": "x86_64",
			"release": object{"full": "12.5", "major": "12", "minor": "5"}, "selinux": object{"enabled": false},
			"distro": object{
				"codename": "bookworm", "description": "Debian GNU/Linux 12 (bookworm)", "id": "Debian",
				"release": object{"full": "12.5", "major": "12", "minor": "5"},
			},
		},
		"identity": object{"gid": 0, "group": "root", "privileged": true, "uid": 0, "user": "root"},
		"processors": object{
			"count": 4, "physicalcount": 1, "isa": "unknown", "cores": 4, "threads": 1, "speed": "2.40 GHz",
			"models": repeat(4, "Intel(R) Xeon(R) Processor"),
		},
		"ssh":        sshKeys(r),
		"networking": networking(r, name, host, address),
		"disks":      disks(r),
		"partitions": partitions(r),
		"role":       []string{"web", "db", "cache", "queue", "proxy"}[node%5], "datacenter": fmt.Sprintf("dc%d", node%3+1), "rack": fmt.Sprintf("r%02d", node%40),
	}
	for i := range 20 { // what sites add in facts.d
		facts[fmt.Sprintf("site_setting_%02d", i)] = fmt.Sprintf("value-%d", r.IntN(8))
	}
	return facts
}

// volatile adds what differs between two runs of a node: about twenty leaves.
func volatile(r *rand.Rand, facts object, generation int) {
	seconds := 86_400 + generation*1800
	facts["system_uptime"] = object{"days": seconds / 86_400, "hours": seconds / 3600, "seconds": seconds, "uptime": fmt.Sprintf("%d days", seconds/86_400)}
	facts["load_averages"] = object{"1m": float64(r.IntN(400)) / 100, "5m": float64(r.IntN(300)) / 100, "15m": float64(r.IntN(200)) / 100}
	used := int64(r.IntN(3 << 30))
	facts["memory"] = object{
		"system": usage(4<<30, used), "swap": usage(1<<30, 0),
	}
	facts["mountpoints"] = object{
		"/":     mount("/dev/vda1", "ext4", 40<<30, int64(r.IntN(20<<30))),
		"/var":  mount("/dev/vda2", "ext4", 80<<30, int64(r.IntN(60<<30))),
		"/boot": mount("/dev/vda3", "ext4", 1<<30, 200<<20),
		"/srv":  mount("/dev/vdb1", "xfs", 200<<30, 90<<30),
		"/tmp":  mount("tmpfs", "tmpfs", 2<<30, 4<<20),
		"/run":  mount("tmpfs", "tmpfs", 400<<20, 1<<20),
	}
}

func usage(total, used int64) object {
	return object{
		"total_bytes": total, "used_bytes": used, "available_bytes": total - used,
		"total": mib(total), "used": mib(used), "available": mib(total - used), "capacity": percent(used, total),
	}
}

func mount(device, filesystem string, size, used int64) object {
	return object{
		"device": device, "filesystem": filesystem, "options": []string{"rw", "relatime"}, "size_bytes": size, "size": mib(size),
		"used_bytes": used, "used": mib(used), "available_bytes": size - used, "available": mib(size - used), "capacity": percent(used, size),
	}
}

func mib(n int64) string { return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20)) }
func percent(part, whole int64) string {
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(whole))
}

func sshKeys(r *rand.Rand) object {
	keys := object{}
	for _, kind := range []string{"rsa", "ecdsa", "ed25519"} {
		keys[kind] = object{
			"type": "ssh-" + kind, "key": fmt.Sprintf("AAAA%048x", r.Uint64()),
			"fingerprints": object{"sha1": fmt.Sprintf("SSHFP 1 1 %040x", r.Uint64()), "sha256": fmt.Sprintf("SSHFP 1 2 %064x", r.Uint64())},
		}
	}
	return keys
}

func networking(r *rand.Rand, name, host, address string) object {
	interfaces := object{}
	for i, device := range []string{"eth0", "eth1", "lo"} {
		ip := address
		if i > 0 {
			ip = fmt.Sprintf("192.168.%d.%d", i, r.IntN(250)+1)
		}
		interfaces[device] = object{
			"ip": ip, "netmask": "255.0.0.0", "network": "10.0.0.0", "mtu": 1500, "mac": fmt.Sprintf("52:54:00:%02x:%02x:%02x", r.IntN(256), r.IntN(256), r.IntN(256)),
			"bindings": []object{{"address": ip, "netmask": "255.0.0.0", "network": "10.0.0.0"}},
		}
	}
	return object{
		"fqdn": name, "hostname": host, "domain": "example.org", "ip": address, "netmask": "255.0.0.0", "network": "10.0.0.0", "mtu": 1500,
		"primary": "eth0", "interfaces": interfaces,
	}
}

func disks(r *rand.Rand) object {
	out := object{}
	for _, name := range []string{"vda", "vdb"} {
		out[name] = object{"size": "120.00 GiB", "size_bytes": int64(120) << 30, "type": "ssd", "vendor": "0x1af4", "serial": fmt.Sprintf("%08x", r.Uint32())}
	}
	return out
}

func partitions(r *rand.Rand) object {
	out := object{}
	for i, mount := range []string{"/", "/var", "/boot"} {
		out[fmt.Sprintf("/dev/vda%d", i+1)] = object{
			"filesystem": "ext4", "mount": mount, "size": "40.00 GiB", "size_bytes": int64(40) << 30,
			"uuid": uuid(r), "partuuid": uuid(r),
		}
	}
	return out
}

func repeat(n int, s string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}
