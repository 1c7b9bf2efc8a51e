// Package puppetenv is what the programs of Puppet need of their environment, and what they tell of themselves, for all
// edges that run them.
package puppetenv

import (
	"os/user"
	"runtime"
	"strings"
)

// Environment is what Puppet needs beside what the agent has: who it runs as, if it
// is not root, and UTF-8, if the locale does not say so.
func Environment(getenv func(string) string) []string {
	var env []string
	if runtime.GOOS == "windows" {
		return nil
	}
	if u, err := user.Current(); err == nil && u.Uid != "0" {
		env = append(env, "USER="+u.Username, "LOGNAME="+u.Username, "HOME="+u.HomeDir)
	}
	if isC(getenv) {
		env = append(env, strings.TrimSuffix("RUBYOPT=-EUTF-8 "+getenv("RUBYOPT"), " "))
	}
	return env
}

// isC says whether the locale is C, which knows only ASCII.
func isC(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := getenv(name); value != "" {
			return value == "C" || value == "POSIX"
		}
	}
	return true
}
