package puppetrun

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// allowed are the flags that may be given, with or without "no-".
var allowed = strings.Fields(`color configtimeout debug disable_warnings environment evaltrace filetimeout graph
	http_connect_timeout http_debug http_keepalive_timeout http_read_timeout log_level noop ordering pluginsync show_diff skip_tags splay splaylimit
	strict_environment_mode tags trace use_cached_catalog usecacheonfailure waitforcert`)

// always are the flags of every run. They may be given, but not negated.
func always() []string { return []string{"--onetime", "--no-daemonize", "--verbose"} }

var plain = regexp.MustCompile(`\A[a-zA-Z0-9_:,.\-]+\z`)

// arguments are puppet's arguments for the flags of an order.
func arguments(flags []string, job string) ([]string, error) {
	args := []string{"agent"}
	for _, flag := range always() {
		if !slices.Contains(flags, flag) {
			args = append(args, flag)
		}
	}
	for _, flag := range flags {
		flag = strings.TrimSpace(flag)
		if !plain.MatchString(flag) {
			return nil,
				fmt.Errorf("the flag %.80q holds characters that are not allowed: only letters, digits and _ : , . - are; a value is an element of its own", flag)
		}
		name, isFlag := strings.CutPrefix(flag, "--")
		if isFlag && !slices.Contains(always(), flag) && !slices.Contains(allowed, strings.TrimPrefix(name, "no-")) {
			return nil, fmt.Errorf("the flag %.80q is not among those that may be given", flag)
		}
		if !isFlag && strings.HasPrefix(flag, "-") {
			return nil, fmt.Errorf("the flag %.80q is short; only long flags may be given", flag)
		}
		args = append(args, flag)
	}
	if job == "" {
		return args, nil
	}
	if !plain.MatchString(job) || strings.HasPrefix(job, "-") {
		return nil, fmt.Errorf("the job %.80q holds characters that are not allowed", job)
	}
	return append(args, "--job-id", job), nil
}
