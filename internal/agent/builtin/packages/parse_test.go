package packages

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDpkg(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want State
	}{
		"installed":  {"ii \tbash\t5.2.15-2+b8\tamd64\n", State{Ensure: "5.2.15-2+b8", Version: "5.2.15", Release: "2+b8", Arch: "amd64"}},
		"epoch":      {"ii \tvim\t2:9.0.1378-2\tamd64\n", State{Ensure: "2:9.0.1378-2", Epoch: "2", Version: "9.0.1378", Release: "2", Arch: "amd64"}},
		"native":     {"ii \tdebconf\t1.5.82\tall\n", State{Ensure: "1.5.82", Version: "1.5.82", Arch: "all"}},
		"held":       {"hi \ta\t1-1-2\tall\n", State{Ensure: "1-1-2", Version: "1-1", Release: "2", Arch: "all"}},
		"settings":   {"rc \tnginx\t1.22\tamd64\n", State{Ensure: "absent"}},
		"only known": {"un \tmail-transport-agent\t\t\n", State{Ensure: "purged"}},
		"nothing":    {"", State{Ensure: "purged"}},
		"several": {
			"un \tlibc6\t\t\nrc \tlibc6\t2.35\ti386\nii \tlibc6\t2.36-9\tamd64\nii \tlibc6\t2.36-9\tarm64\n", State{
				Ensure: "2.36-9", Version: "2.36", Release: "9", Arch: "amd64",
			},
		},
		"unpacked, configured": {"iU \ta\t1\tall\n", State{Ensure: "1", Version: "1", Arch: "all"}},
	} {
		c.want.Provider, c.want.Name = "apt", "x"
		if diff := cmp.Diff(c.want, parseDpkg("x", c.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseRPM(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want State
	}{
		"installed": {"bash\t(none)\t5.1.8\t9.el9\tx86_64\n", State{Ensure: "5.1.8-9.el9", Epoch: "0", Version: "5.1.8", Release: "9.el9", Arch: "x86_64"}},
		"epoch":     {"openssl\t1\t3.0.7\t27.el9\tx86_64\n", State{Ensure: "1:3.0.7-27.el9", Epoch: "1", Version: "3.0.7", Release: "27.el9", Arch: "x86_64"}},
		"several": {
			"kernel\t(none)\t5.14.0\t1.el9\tx86_64\nkernel\t(none)\t5.14.0\t2.el9\tx86_64\n", State{
				Ensure: "5.14.0-2.el9", Epoch: "0", Version: "5.14.0", Release: "2.el9", Arch: "x86_64",
			},
		},
		"nothing": {"package x is not installed\n", State{Ensure: "absent"}},
	} {
		c.want.Provider, c.want.Name = "dnf", "x"
		if diff := cmp.Diff(c.want, parseRPM("dnf", "x", c.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestVersionsThatAreTheSame(t *testing.T) {
	t.Parallel()
	rpm := parseRPM("dnf", "openssl", "openssl\t1\t3.0.7\t27.el9\tx86_64\n")
	deb := parseDpkg("vim", "ii \tvim\t2:9.0.1378-2\tamd64\n")
	for _, c := range []struct {
		state   State
		version string
		want    bool
	}{
		{rpm, "3.0.7", true},
		{rpm, "3.0.7-27.el9", true},
		{rpm, "1:3.0.7-27.el9", true},
		{rpm, "1:3.0.7", true},
		{rpm, "3.0", false},
		{rpm, "3.0.7-2", false},
		{deb, "2:9.0.1378-2", true},
		{deb, "9.0.1378-2", true},
		{deb, "9.0.1378-1", false},
		{deb, "3:9.0.1378-2", false},
	} {
		if got := c.state.is(c.version); got != c.want {
			t.Errorf("%s is %s: %v", c.state.Ensure, c.version, got)
		}
	}
}

// What apt 2.6 prints.
const simulation = `Reading package lists...
The following packages will be upgraded:
  base-files libgcrypt20
Inst base-files [12.4+deb12u11] (12.4+deb12u15 Debian:12.15/oldstable [amd64])
Conf base-files (12.4+deb12u15 Debian:12.15/oldstable [amd64])
Inst libgcrypt20 [1.10.1-3] (1.10.1-3+deb12u1 Debian:12.15/oldstable, Debian-Security:12/oldstable-security [amd64]) [libgcrypt20-dev:amd64 ]
Inst linux-image-6.1.0-40-amd64 (6.1.153-1 Debian:12.15/oldstable [amd64])
Remv old [1.0]
Inst local [1] (2 [all])
`

func TestParseSimulation(t *testing.T) {
	t.Parallel()
	want := []Outdated{
		{"base-files", "12.4+deb12u15", "Debian:12.15/oldstable", "12.4+deb12u11"},
		{"libgcrypt20", "1.10.1-3+deb12u1", "Debian:12.15/oldstable, Debian-Security:12/oldstable-security", "1.10.1-3"},
		{"local", "2", "", "1"},
	}
	if diff := cmp.Diff(want, parseSimulation(simulation)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// As dnf 4 and yum 3 print it: in columns, a row that is too long goes on in the next line.
const checkUpdate = `
curl.x86_64                    7.76.1-26.el9_3.3            baseos
java-1.8.0-openjdk-headless.x86_64
                               1:1.8.0.402.b06-2.el9        rhel-9-for-x86_64-appstream-rpms
openssl-libs.x86_64            1:3.0.7-27.el9               baseos
Security: kernel-core-5.14.0-1.el9.x86_64 is an installed security update
Obsoleting Packages
grub2-tools.x86_64             1:2.06-70.el9                baseos
    grub2-tools.x86_64         1:2.06-61.el9                @baseos
`

func TestParseCheckUpdate(t *testing.T) {
	t.Parallel()
	want := []Outdated{
		{Package: "curl.x86_64", Version: "7.76.1-26.el9_3.3", Repo: "baseos"},
		{Package: "java-1.8.0-openjdk-headless.x86_64", Version: "1:1.8.0.402.b06-2.el9", Repo: "rhel-9-for-x86_64-appstream-rpms"},
		{Package: "openssl-libs.x86_64", Version: "1:3.0.7-27.el9", Repo: "baseos"},
	}
	if diff := cmp.Diff(want, parseCheckUpdate(checkUpdate)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const listUpdates = `<?xml version='1.0'?>
<stream>
<message type="info">Loading repository data...</message>
<update-status version="0.6">
<update-list>
  <update kind="package" name="curl" edition="8.0.1-150400.5.41.1" arch="x86_64" edition-old="7.79.1-150400.5.6.1">
    <summary>A Tool for Transferring Data from URLs</summary>
    <source url="https://updates.example.org/SLES" alias="SLES15-SP4-Updates"/>
  </update>
  <update kind="patch" name="SUSE-2023-1" edition="1" arch="noarch"/>
</update-list>
</update-status>
</stream>
`

func TestParseZypper(t *testing.T) {
	t.Parallel()
	want := []Outdated{{"curl", "8.0.1-150400.5.41.1", "SLES15-SP4-Updates", "7.79.1-150400.5.6.1"}}
	got, err := parseZypper(listUpdates)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := parseZypper("no XML"); err == nil {
		t.Error("what is no XML was read")
	}
}

func TestParseInstalled(t *testing.T) {
	t.Parallel()
	got := parseInstalled([]string{"ii bash 5", "rc nginx 1", "hi held 2", "un x ", "", "iU half 3"})
	if want := []string{"bash 5", "held 2"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Whatever a package manager prints: a state has an ensure, and a row has a name and a version.
func FuzzParsers(f *testing.F) {
	for _, text := range []string{"ii \tbash\t5.2.15-2+b8\tamd64\n", "bash\t(none)\t5.1.8\t9.el9\tx86_64\n", simulation, checkUpdate, listUpdates} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if parseDpkg("x", text).Ensure == "" || parseRPM("dnf", "x", text).Ensure == "" {
			t.Errorf("%q has no ensure", text)
		}
		rows := slices.Concat(parseSimulation(text), parseCheckUpdate(text))
		if more, err := parseZypper(text); err == nil {
			rows = append(rows, more...)
		}
		for _, row := range rows {
			if row.Package == "" {
				t.Errorf("%q: %+v", text, row)
			}
		}
		_ = parseInstalled(strings.Split(text, "\n"))
	})
}
