package inventory

// Because says of each skipped resource, "Type[title]", for which failed or skipped one it was skipped: the nearest that leads to it by
// the catalog's edges. What no edge leads to is left out. A container stands for all that is in it: what needs a class needs each of
// its resources.
func Because(failed, skipped []string, edges []Edge) map[string]string {
	contents, containers, needers := map[string][]string{}, map[string][]string{}, map[string][]string{}
	for _, e := range edges {
		if e.Relationship == "contains" {
			contents[e.Source] = append(contents[e.Source], e.Target)
			containers[e.Target] = append(containers[e.Target], e.Source)
			continue
		}
		needers[e.Source] = append(needers[e.Source], e.Target)
	}
	wanted := make(map[string]bool, len(skipped))
	for _, name := range skipped {
		wanted[name] = true
	}
	type event struct {
		resource string
		ends     bool // else it begins
	}
	type step struct {
		event
		because string // the resource that holds everything up behind it
	}
	because, seen := map[string]string{}, map[event]bool{}
	var queue []step
	push := func(at event, why string) {
		if !seen[at] {
			seen[at] = true
			queue = append(queue, step{at, why})
		}
	}
	for _, name := range failed {
		push(event{name, true}, name)
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s.ends {
			for _, name := range needers[s.resource] {
				push(event{name, false}, s.because)
			}
			for _, name := range containers[s.resource] {
				push(event{name, true}, s.because)
			}
			continue
		}
		for _, name := range contents[s.resource] {
			push(event{name, false}, s.because)
		}
		if wanted[s.resource] {
			if s.because != s.resource {
				because[s.resource] = s.because
			}
			push(event{s.resource, true}, s.resource)
		}
	}
	return because
}
