package preflight

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fault/checkup"
	"github.com/tutti-project/tutti/internal/program/cell"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// Check looks for what would keep a server with these settings from its start or from its work. It changes nothing.
func Check(ctx context.Context, c settings.Config) []checkup.Finding {
	all := append([]checkup.Finding{checkup.Goodf("settings", "data in %s, listening on %s", c.Data, c.Listen)}, cheapChecks(ctx, c)...)
	all = append(append(append(all, clusterCheck(c)...), contentCheck(ctx, c)...), natsCheck(c)...)
	all = append(all, engineChecks(ctx, c)...)
	return append(all, cellCheck(ctx, c), nameCheck(ctx, c), clockCheck())
}

// cheapChecks are those that each start makes.
func cheapChecks(ctx context.Context, c settings.Config) []checkup.Finding {
	all := []checkup.Finding{dataCheck(c.Data), roomCheck(c.Data), filesCheck(c.MaxConnections)}
	if _, err := installed(c); err != nil {
		all = append(all, checkup.Failed("puppet", err, mendPuppet))
	}
	all = append(all, portCheck(ctx, "port", "listen", c.Listen, c.Data))
	if c.BrokerListen != "" {
		all = append(all, portCheck(ctx, "broker port", "broker-listen", c.BrokerListen, c.Data))
	}
	if c.OrchestratorListen != "" {
		all = append(all, portCheck(ctx, "orchestrator port", "orchestrator-listen", c.OrchestratorListen, c.Data))
	}
	if c.RBACListen != "" {
		all = append(all, portCheck(ctx, "RBAC port", "rbac-listen", c.RBACListen, c.Data))
	}
	if c.ConsoleListen != "" {
		all = append(all, portCheck(ctx, "console port", "console-listen", c.ConsoleListen, c.Data))
	}
	return all
}

// Start is the cheap checks of a start: all that is broken at once, and the words of what is worth a warning.
func Start(ctx context.Context, c settings.Config, log *slog.Logger) error {
	all := cheapChecks(ctx, c)
	for _, f := range checkup.Those(all, checkup.Warning) {
		log.WarnContext(ctx, "a check of this machine", "check", f.Check, "found", f.Found, "mend", f.Mend)
	}
	broken := checkup.Those(all, checkup.Broken)
	switch {
	case len(broken) == 0:
		return nil
	case len(broken) == 1 && broken[0].Err != nil:
		return broken[0].Err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "the server cannot start: %s found something broken; `tutti server --check-config` shows all", fault.Count(len(broken), "check"))
	for _, f := range broken {
		fmt.Fprintf(&text, "\n  %s: %s", f.Check, f.Found)
		if f.Mend != "" {
			text.WriteString("\n    → " + f.Mend)
		}
	}
	return fault.New(fault.Invalid, "%s", &text)
}

// dataCheck looks at the data directory, its owner and mode.
func dataCheck(path string) checkup.Finding {
	const check = "data"
	path, err := filepath.Abs(path)
	if err != nil {
		return checkup.Failed(check, err, "name another directory with --data")
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		above := existing(path)
		if err := unix.Access(above, unix.W_OK|unix.X_OK); err != nil {
			return checkup.Failed(check, datadir.Unusable(path, err),
				fmt.Sprintf("install -d -m 700 -o %s %s, or name another directory with --data", userName(os.Geteuid()), path))
		}
		return checkup.Goodf(check, "%s is not there yet: the first start makes it", path)
	}
	if err != nil {
		return checkup.Failed(check, datadir.Unusable(path, err), "name another directory with --data")
	}
	if !info.IsDir() {
		return checkup.Failed(check, datadir.CheckMode(path), "name another directory with --data")
	}
	if err := datadir.CheckMode(path); err != nil {
		f := checkup.Failed(check, err, "chmod 700 "+path)
		f.Found = strings.TrimSuffix(f.Found, "; run: "+f.Mend)
		return f
	}
	if err := unix.Access(path, unix.W_OK|unix.X_OK); err != nil {
		return checkup.Failed(check, datadir.Unusable(path, err),
			fmt.Sprintf("chown -R %s %s, if nobody else's server uses it; or name another with --data", userName(os.Geteuid()), path))
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != os.Geteuid() { //nolint:forcetypeassert // files of this system have it
		return checkup.Finding{
			Check: check, State: checkup.Warning,
			Found: fmt.Sprintf("%s belongs to %s, and this is %s: a server of one leaves files that a server of the other cannot use", path, userName(owner),
				userName(os.Geteuid())),
			Mend: fmt.Sprintf("run the server as %s, or: chown -R %s %s", userName(owner), userName(os.Geteuid()), path),
		}
	}
	if holder := holderOf(path); holder != "" {
		return checkup.Goodf(check, "%s is used by the server that runs (process %s)", path, holder)
	}
	return checkup.Goodf(check, "%s belongs to %s, who alone can read it", path, userName(os.Geteuid()))
}

// existing is the nearest directory above a path that is there.
func existing(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}

// holderOf is the process that holds the lock of a data directory; empty: none that this user may see. The lock itself is left alone: a
// server that starts at this moment wants it.
func holderOf(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	lock := filepath.Join(path, "lock")
	text, _ := os.ReadFile(lock)
	holder := strings.TrimSpace(string(text))
	if _, err := strconv.Atoi(holder); err != nil {
		return ""
	}
	files, _ := filepath.Glob(filepath.Join("/proc", holder, "fd", "*"))
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && to == lock {
			return holder
		}
	}
	return ""
}

// littleRoom is how much is worth a warning: a catalog, a report and an update of the database want some.
const littleRoom = 1 << 30

func roomCheck(path string) checkup.Finding {
	const check = "disk"
	there := path
	if _, err := os.Stat(path); err != nil {
		if absolute, err := filepath.Abs(path); err == nil {
			there = existing(absolute)
		}
	}
	free, err := datadir.FreeBytes(there)
	switch {
	case err != nil:
		return checkup.Finding{
			Check: check, State: checkup.Warning,
			Found: fmt.Sprintf("the room for %s is not known: %v", path, err),
			Mend:  "df -h " + there,
		}
	case free < littleRoom: // a full one is no reason not to start: the server reads and serves
		found := fmt.Sprintf("%d MiB are free for %s", free>>20, path)
		if free < datadir.RoomAbove {
			found += ": the server would start read-only"
		}
		return checkup.Finding{
			Check: check, State: checkup.Warning,
			Found: found,
			Mend:  "make room, or move the data: `tutti server usage` says what takes how much",
		}
	}
	return checkup.Goodf(check, "%d MiB are free for %s", free>>20, path)
}

// spareFiles is what a server opens besides connections: records, blobs, pipes of workers.
const spareFiles = 1024

func filesCheck(connections int) checkup.Finding {
	const check = "open files"
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return checkup.Finding{Check: check, State: checkup.Warning, Found: fmt.Sprintf("the limit is not known: %v", err), Mend: "ulimit -Hn"}
	}
	wanted := uint64(connections) + spareFiles //nolint:gosec // the settings' check refuses what is not larger than zero
	if limit.Max >= wanted {
		return checkup.Goodf(check, "%d can be open", limit.Max)
	}
	return checkup.Finding{
		Check: check, State: checkup.Warning, Found: fmt.Sprintf("%d can be open: too few for max_connections, %d", limit.Max, connections),
		Mend: fmt.Sprintf("LimitNOFILE=%d in the service's unit, or ulimit -n %[1]d; or lower max_connections", wanted),
	}
}

const mendPuppet = "apt-get install puppet-agent, or openvox-agent from OpenVox's packages; or name the Ruby of another installation with --ruby"

// installed are the engines of a server with these settings.
func installed(c settings.Config) ([]ruby.Engine, error) {
	engines, err := c.EnginesWith(append([]ruby.Engine{}, ruby.FindEngines()...))
	if err == nil && len(engines) == 0 {
		err = fault.New(fault.Unavailable, "no Ruby with Puppet here")
	}
	return engines, err
}

// engineChecks asks each engine what it is. A server without its default engine compiles nothing.
func engineChecks(ctx context.Context, c settings.Config) (all []checkup.Finding) {
	engines, err := installed(c)
	if err != nil {
		return nil // the cheap checks say it
	}
	for i, engine := range engines {
		check := "engine " + engine.Name
		s := ruby.Examine(ctx, engine, !c.CompileJIT)
		switch {
		case s.Trouble == nil:
			name := s.By + " " + s.Puppet + " with Ruby " + s.Version + ", " + engine.Ruby
			if i == 0 {
				name += " (default)"
			}
			all = append(all, checkup.Goodf(check, "%s", name))
		case i == 0:
			all = append(all, checkup.Failed(check, s.Trouble, mendPuppet))
		default:
			f := checkup.Failed(check, s.Trouble, "mend this installation, or take it out of engines: code for it does not compile")
			f.State = checkup.Warning
			if settings.MayBeFound(engine.Name) && !slices.ContainsFunc(c.Engines, func(entry string) bool { return strings.HasPrefix(entry, engine.Name+":") }) {
				f.State, f.Mend = checkup.Good, "" // found by the way, and no code is for it unless somebody says so
				f.Found = "not used: " + f.Found
			}
			all = append(all, f)
		}
	}
	return all
}

// cellCheck tries out what code that is compiled may reach.
func cellCheck(ctx context.Context, c settings.Config) checkup.Finding {
	const check = "cells"
	dir, err := os.MkdirTemp("", "tutti-cells-")
	if err != nil {
		return checkup.Failed(check, fmt.Errorf("make a directory to try out cells: %w", err), "make room in "+os.TempDir())
	}
	defer func() { _ = os.RemoveAll(dir) }()
	k, err := cell.Open(ctx, cell.Config{Mode: cell.Mode(c.CompileIsolation), User: c.CompileUser, Dir: dir})
	if err != nil {
		return checkup.Failed(check, err, mendCells(nil))
	}
	standing := k.Standing()
	as := ""
	if standing.User != "" {
		as = ", as the user " + standing.User
	}
	switch {
	case standing.Mode == cell.Off:
		return checkup.Finding{
			Check: check, State: checkup.Warning,
			Found: "code that is compiled may do whatever the server may (compile_isolation is off)",
			Mend:  "compile_isolation: best-effort, or strict",
		}
	case len(standing.Missing) == 0:
		return checkup.Goodf(check, "code is compiled in cells that lack nothing%s", as)
	}
	return checkup.Finding{
		Check: check, State: checkup.Warning, Found: "code is compiled in cells" + as + ", without " + strings.Join(standing.Reasons(), "; without "),
		Mend: mendCells(standing.Parts()),
	}
}

// mendCells says how parts of cells are had.
func mendCells(missing []string) string {
	var ways []string
	if missing == nil || slices.Contains(missing, "user") {
		ways = append(ways, "useradd --system --no-create-home --shell /usr/sbin/nologin "+cell.DefaultUser)
	}
	if slices.Contains(missing, "namespaces") {
		ways = append(ways, "run the server as root, or: sysctl kernel.unprivileged_userns_clone=1")
	}
	return strings.Join(append(ways, "docs/compile-cell.md says what each part is for"), "; ")
}

// portCheck tries to listen, and says who has the port.
func portCheck(ctx context.Context, check, flag, address, data string) checkup.Finding {
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		_ = socket.Close()
		return checkup.Goodf(check, "%s can be listened on", address)
	}
	why := err
	if inner, ok := errors.AsType[*os.SyscallError](err); ok {
		why = inner.Err
	}
	failed := func(found, mend string) checkup.Finding {
		f := checkup.Failed(check, fault.Wrap(fault.Invalid, err, "listen on %s: %s; %s", address, found, mend), mend)
		f.Found = address + ": " + found
		return f
	}
	other := "give another with --" + flag
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		pid, name := whoListens(address)
		switch {
		case pid == 0:
			return failed("another program, of another user, uses the port", "ss -ltnp as root names it; or "+other)
		case strconv.Itoa(pid) == holderOf(data):
			return checkup.Goodf(check, "%s is used by the server that runs (process %d)", address, pid)
		}
		return failed(fmt.Sprintf("%s (process %d) uses the port", name, pid), "stop it, or "+other)
	case errors.Is(err, unix.EACCES):
		return failed("ports below 1024 are root's", "run it with AmbientCapabilities=CAP_NET_BIND_SERVICE, or "+other)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return failed("this machine does not have the address", "`ip addr` shows those it has; or "+other)
	}
	return failed(why.Error(), other)
}

// nameCheck looks up the name that agents would ask for, and says which names the certificate has.
func nameCheck(ctx context.Context, c settings.Config) checkup.Finding {
	const check = "names"
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	names := c.ServerNames()
	host := names[0]
	outside := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == "localhost" || net.ParseIP(name) != nil && net.ParseIP(name).IsLoopback()
	})
	listed := strings.Join(outside, ", ")
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return checkup.Finding{
			Check: check, State: checkup.Warning,
			Found: fmt.Sprintf("this host is called %s, and no name server or file knows that name: agents cannot find it so; its certificate is for %s", host, listed),
			Mend:  fmt.Sprintf("add %s to DNS (or /etc/hosts), or give the name that agents use with --dns-alt-names", host),
		}
	}
	if puppet, err := net.DefaultResolver.LookupHost(ctx, "puppet"); err == nil && !slices.Contains(names, "puppet") &&
		len(common(puppet, append(found, ownAddresses()...))) > 0 {
		return checkup.Finding{
			Check: check, State: checkup.Warning, Found: "agents that are told nothing ask for puppet, which is this host; its certificate is for " + listed,
			Mend: "--dns-alt-names puppet, or dns_alt_names: [puppet] in the configuration file",
		}
	}
	if !strings.Contains(host, ".") && len(c.DNSAltNames) == 0 {
		return checkup.Finding{
			Check: check, State: checkup.Warning,
			Found: fmt.Sprintf("the certificate is for %s, without a domain: agents that use the full name would refuse it", listed),
			Mend:  "--dns-alt-names FULL.NAME, or `hostnamectl set-hostname FULL.NAME`",
		}
	}
	return checkup.Goodf(check, "the certificate is for %s; %s is %s", listed, host, strings.Join(found, ", "))
}

func common(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(one string) bool { return !slices.Contains(others, one) })
}

// ownAddresses are those of this machine's interfaces.
func ownAddresses() (all []string) {
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok {
			all = append(all, network.IP.String())
		}
	}
	return all
}

// clockCheck asks the kernel whether anything keeps the clock right, and looks whether it is before this program was made.
func clockCheck() checkup.Finding {
	const check = "clock"
	now := time.Now()
	if made, err := time.Parse(time.RFC3339, api.ProgramBuild().Date); err == nil && now.Before(made) {
		return checkup.Finding{
			Check: check, State: checkup.Broken,
			Found: fmt.Sprintf("it says %s, and this program was made on %s", now.UTC().Format(time.RFC3339), made.Format(time.DateOnly)),
			Mend:  "set the clock: certificates would begin in the past; apt-get install chrony keeps it right",
		}
	}
	state, err := unix.Adjtimex(new(unix.Timex))
	if err == nil && state == unix.TIME_ERROR {
		return checkup.Finding{
			Check: check, State: checkup.Warning, Found: fmt.Sprintf("it says %s, and nothing keeps it right", now.UTC().Format(time.RFC3339)),
			Mend: "apt-get install chrony (or systemd-timesyncd): certificates are good between two times",
		}
	}
	return checkup.Goodf(check, "it says %s", now.UTC().Format(time.RFC3339))
}

// userName is how a user is called; the number where no name is known.
func userName(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return strconv.Itoa(id)
}
