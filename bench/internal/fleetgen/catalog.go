package fleetgen

import (
	"fmt"
	"time"
)

// ResourcesPerCatalog is how many resources a made-up catalog has.
const ResourcesPerCatalog = 60

type catalogBuilder struct {
	resources, edges []object
}

func ref(kind, title string) object { return object{"type": kind, "title": title} }

func (b *catalogBuilder) add(kind, title string, in object, line int, exported bool, parameters object) object {
	tags := []string{"class", "site", lower(kind)}
	resource := object{
		"type": kind, "title": title, "exported": exported, "tags": tags, "parameters": parameters, "aliases": []string{},
		"file": fmt.Sprintf("/etc/puppetlabs/code/environments/production/modules/profile/manifests/part%d.pp", line%10), "line": line,
	}
	if in == nil { // the stage and the main class have no place in a file
		delete(resource, "file")
		delete(resource, "line")
	} else {
		b.edges = append(b.edges, object{"source": in, "target": ref(kind, title), "relationship": "contains"})
	}
	b.resources = append(b.resources, resource)
	return ref(kind, title)
}

// PuppetDBCatalog is the payload of `replace catalog` version 9: classes by role
// and system, and what they manage. Two resources are exported.
func (f Fleet) PuppetDBCatalog(node int) []byte {
	r := f.random(kindCatalog, node, 0)
	certname, s := f.Certname(node), f.system(node)
	b := &catalogBuilder{}
	stage := b.add("Stage", "main", nil, 0, false, object{})
	main := b.add("Class", "Main", stage, 1, false, object{})
	classes := []object{main}
	for i, title := range []string{
		"Profile::Base", "Role::" + title(role(node)), "Profile::" + title(role(node)), "Profile::Os::" + s.family, "Ntp", "Ssh::Server",
		"Profile::Monitoring", "Profile::Patching",
	} {
		classes = append(classes, b.add("Class", title, main, 10+i, false, object{"ensure": "present"}))
	}
	b.add("Nagios_host", certname, classes[7], 30, true, object{"ensure": "present", "alias": certname, "use": "generic-host", "hostgroups": role(node)})
	b.add("Sshkey", certname, classes[6], 31, true, object{"ensure": "present", "type": "ssh-rsa", "key": fmt.Sprintf("AAAA%048x", r.Uint64())})
	kinds := []string{"File", "Package", "Service", "File", "Exec", "User", "File", "Cron"}
	for i := len(b.resources); i < ResourcesPerCatalog; i++ {
		class := classes[1+i%(len(classes)-1)]
		switch kind := kinds[i%len(kinds)]; kind {
		case "File":
			parameters := object{"ensure": "file", "mode": "0644", "owner": "root", "group": "root", "content": fmt.Sprintf("{sha256}%064x", i)}
			if i%9 == 0 { // some files are the node's own
				parameters["content"] = fmt.Sprintf("{sha256}%064x", r.Uint64())
			}
			b.add(kind, fmt.Sprintf("/etc/site/%s-%02d.conf", role(node), i), class, 100+i, false, parameters)
		case "Package":
			b.add(kind, fmt.Sprintf("pkg-%s-%02d", s.family, i), class, 100+i, false, object{
				"ensure": []string{"installed", "latest", "1.2.3-1"}[r.IntN(3)], "provider": "apt",
			})
		case "Service":
			b.add(kind, fmt.Sprintf("svc-%02d", i), class, 100+i, false, object{"ensure": "running", "enable": true})
		case "User":
			b.add(kind, fmt.Sprintf("user%02d", i), class, 100+i, false, object{"ensure": "present", "uid": 1000 + i, "shell": "/bin/bash"})
		default:
			b.add(kind, fmt.Sprintf("%s-%02d", lower(kind), i), class, 100+i, false, object{"command": fmt.Sprintf("/usr/local/bin/job-%02d", i), "user": "root"})
		}
	}
	return marshal(object{
		"certname": certname, "version": codeVersion, "environment": environment(node), "transaction_uuid": uuid(r), "catalog_uuid": uuid(r),
		"code_id": nil, "job_id": nil, "producer_timestamp": f.When(node, 0).Format(time.RFC3339Nano), "producer": producer,
		"resources": b.resources, "edges": b.edges,
	})
}

func title(word string) string { return string(word[0]-'a'+'A') + word[1:] }

func lower(word string) string {
	if word[0] < 'A' || word[0] > 'Z' {
		return word
	}
	return string(word[0]-'A'+'a') + word[1:]
}
