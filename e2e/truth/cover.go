package truth

import "slices"

// coverFrom is how many worlds Cover chooses from.
const coverFrom = 600

// Cover is the seeds of few worlds that have all constructs together, but for mistakes;
// some more have a mistake each.
func Cover(mistaken int) []uint64 {
	missing := map[string]bool{}
	for _, c := range words.sound {
		missing[c.name] = Off[c.name] == ""
	}
	var sound, seeds []uint64
	worlds := map[uint64][]string{}
	for seed := uint64(1); seed <= coverFrom; seed++ {
		worlds[seed] = New(seed).Constructs
		switch {
		case !slices.ContainsFunc(worlds[seed], isMistake):
			sound = append(sound, seed)
		case mistaken > 0:
			seeds = append(seeds, seed)
			mistaken--
		}
	}
	for {
		best, most := uint64(0), 0
		for _, seed := range sound {
			if n := count(worlds[seed], missing); n > most {
				best, most = seed, n
			}
		}
		if most == 0 {
			slices.Sort(seeds)
			return seeds
		}
		seeds = append(seeds, best)
		for _, name := range worlds[best] {
			missing[name] = false
		}
	}
}

func isMistake(name string) bool {
	return slices.ContainsFunc(words.mistakes, func(c construct) bool { return c.name == name })
}

func count(names []string, wanted map[string]bool) int {
	n := 0
	for _, name := range names {
		if wanted[name] {
			n++
		}
	}
	return n
}
