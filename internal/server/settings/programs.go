package settings

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tutti-project/tutti/internal/program/cell"
)

// The operator's programs, as settings name them.
const (
	AutosignProgram   = "autosign"
	TrustedProgram    = "trusted"
	ClassifierProgram = "classifier"
	R10kProgram       = "r10k" // which is run for Puppetfiles
)

// ProgramReaches reads what each of the operator's programs may reach beyond itself and the system. All share what is named for no one.
func (c Config) ProgramReaches() (map[string]cell.Spec, error) {
	reaches := map[string]cell.Spec{AutosignProgram: {}, TrustedProgram: {}, ClassifierProgram: {}, R10kProgram: {Ports: r10kPorts}}
	for _, setting := range []struct {
		key     string
		entries []string
		add     func(s *cell.Spec, what string) error
	}{
		{"program_paths", c.ProgramPaths, func(s *cell.Spec, what string) error { s.Run = append(s.Run, what); return c.mayShow(what) }},
		{"program_network", c.ProgramNetwork, func(s *cell.Spec, what string) error {
			port, err := portOf(what)
			s.Ports = append(s.Ports, port)
			return err
		}},
	} {
		for _, entry := range setting.entries {
			g := narrowed(entry)
			if _, known := reaches[string(g.environment)]; g.environment != "" && !known {
				return nil, Bad(setting.key, "%q is none of the programs autosign, trusted, classifier and r10k", g.environment)
			}
			for name, reach := range reaches {
				if g.environment != "" && string(g.environment) != name {
					continue
				}
				if err := setting.add(&reach, g.what); err != nil {
					return nil, Bad(setting.key, "%s", err)
				}
				reaches[name] = reach
			}
		}
	}
	return reaches, nil
}

// portOf reads a TCP port.
func portOf(text string) (int, error) {
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("%q is no TCP port, 1 to 65535; hosts cannot be told apart", text)
	}
	return port, nil
}

// r10kPorts are those that modules are fetched from: HTTPS, HTTP and git.
var r10kPorts = slices.Clip([]int{443, 80, 9418})
