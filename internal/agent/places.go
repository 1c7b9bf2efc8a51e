package agent

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/fault"
)

// places are where a node's certificates are kept.
type places struct {
	ca, certificate, key, crl string
	mode                      fs.FileMode // of the key
	owner                     *owner      // of what is made there; nil: who makes it
}

// ownPlaces are those of an agent that shares nothing.
func ownPlaces(dir string) places {
	return places{
		ca: filepath.Join(dir, caName), certificate: filepath.Join(dir, certificateName), key: filepath.Join(dir, keyName),
		crl: filepath.Join(dir, crlName), mode: 0o600,
	}
}

// placesNow are those that agent.yaml names, if it is there; else the agent's own.
func placesNow(dir string) (places, error) {
	at, path := ownPlaces(dir), filepath.Join(dir, ConfigFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return at, nil
	}
	if err != nil {
		return at, unwritable(path, err)
	}
	var named struct {
		CA          string `yaml:"ca_file"`
		Certificate string `yaml:"certificate_file"`
		Key         string `yaml:"key_file"`
		CRL         string `yaml:"crl_file"`
	}
	if err := yaml.Unmarshal(text, &named); err != nil {
		return at, fault.New(fault.Invalid, "%s is no YAML: %v; mend it, or remove it: join writes a new one", path, err)
	}
	for to, from := range map[*string]string{&at.ca: named.CA, &at.certificate: named.Certificate, &at.key: named.Key, &at.crl: named.CRL} {
		if from != "" {
			*to = from
		}
	}
	return at, nil
}

// put replaces a file of these places.
func (p places) put(path string, content []byte, mode fs.FileMode) error {
	if p.owner == nil {
		return rewrite(path, content, mode)
	}
	return writeAs(path, content, mode, p.owner)
}

// owner is whom a file belongs to.
type owner struct{ user, group int }

// serviceOwner is whom Puppet gives its certificates to: its own user, where there is one, and root anywhere else. Only root can give.
func serviceOwner(userName, groupName string) *owner {
	if os.Geteuid() != 0 {
		return nil
	}
	o := &owner{}
	if u, err := user.Lookup(userName); err == nil {
		o.user, _ = strconv.Atoi(u.Uid)
	}
	if g, err := user.LookupGroup(groupName); err == nil {
		o.group, _ = strconv.Atoi(g.Gid)
	}
	return o
}

// makeDirAs makes a directory that is not there, as Puppet makes it.
func makeDirAs(path string, mode fs.FileMode, o *owner) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // Puppet's own modes
		return unwritable(path, err)
	}
	switch err := os.Mkdir(path, mode); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return unwritable(path, err)
	}
	err := os.Chmod(path, mode) // whatever the umask
	if o != nil {
		err = errors.Join(err, os.Chown(path, o.user, o.group))
	}
	if err != nil {
		return unwritable(path, err)
	}
	return nil
}
