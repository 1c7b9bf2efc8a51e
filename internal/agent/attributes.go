package agent

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/fault"
)

// What an administrator wants in a node's certificate stands in Puppet's csr_attributes.yaml: who asks for the certificate that Puppet
// has, too, asks for the same.

var oidExtensionRequest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}

// extensionIDs are Puppet's short names of extensions, by the arc that they are below, counted from 1.
func extensionIDs() map[string]asn1.ObjectIdentifier {
	ids := map[string]asn1.ObjectIdentifier{}
	below := func(arc, n int, name string) {
		ids[name] = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 34380, 1, arc, n}
	}
	for n, name := range strings.Fields(`pp_uuid pp_instance_id pp_image_name pp_preshared_key pp_cost_center pp_product pp_project pp_application
		pp_service pp_employee pp_created_by pp_environment pp_role pp_software_version pp_department pp_cluster pp_provisioner pp_region
		pp_datacenter pp_zone pp_network pp_securitypolicy pp_cloudplatform pp_apptier pp_hostname pp_owner`) {
		below(1, n+1, name)
	}
	for n, name := range map[int]string{1: "pp_authorization", 2: "pp_auth_auto_renew", 13: "pp_auth_role", 39: "pp_cli_auth"} {
		below(3, n, name)
	}
	return ids
}

// csrAttributes are what a request carries beside name and key.
type csrAttributes struct {
	password string // the challenge password, which may be a join token
	more     []attribute
}

// readAttributes reads csr_attributes.yaml; there may be none.
func readAttributes(path string) (a csrAttributes, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, unwritable(path, err)
	}
	var file struct {
		Custom     map[string]any `yaml:"custom_attributes"`
		Extensions map[string]any `yaml:"extension_requests"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return a, fault.New(fault.Conflict, "%s is no YAML: %v; mend it, or remove it, and join again", path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(file.Custom)) {
		value := fmt.Sprint(file.Custom[name])
		id, err := identifier(path, name, map[string]asn1.ObjectIdentifier{"challengePassword": oidChallenge})
		if err != nil {
			return a, err
		}
		if id.Equal(oidChallenge) {
			a.password = value
			continue
		}
		one, err := textAttribute(id, value)
		if err != nil {
			return a, err
		}
		a.more = append(a.more, one)
	}
	return a, a.request(path, file.Extensions)
}

// request adds the attribute that asks for extensions.
func (a *csrAttributes) request(path string, wanted map[string]any) error {
	if len(wanted) == 0 {
		return nil
	}
	var all []pkix.Extension
	known := extensionIDs()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		id, err := identifier(path, name, known)
		if err != nil {
			return err
		}
		value, err := asn1.MarshalWithParams(fmt.Sprint(wanted[name]), "utf8")
		if err != nil {
			return fault.Wrap(fault.Conflict, err, "%s: the value of %s cannot be written into a request", path, name)
		}
		all = append(all, pkix.Extension{Id: id, Value: value})
	}
	text, err := asn1.Marshal(all)
	if err != nil {
		return fmt.Errorf("write the extensions of a request: %w", err)
	}
	a.more = append(a.more, attribute{oidExtensionRequest, []asn1.RawValue{{FullBytes: text}}})
	return nil
}

// identifier is an OID, or a name that stands for one.
func identifier(path, name string, known map[string]asn1.ObjectIdentifier) (asn1.ObjectIdentifier, error) {
	if id, there := known[name]; there {
		return id, nil
	}
	var id asn1.ObjectIdentifier
	for part := range strings.SplitSeq(name, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil,
				fault.New(fault.Conflict,
					"%s names %q, which Puppet alone may know (custom_trusted_oid_mapping.yaml): write its number (1.3.6.1...) instead and join again; "+
						"or let Puppet ask: `puppet ssl bootstrap`, and then join with --use-puppet-certificates", path, name)
		}
		id = append(id, n)
	}
	if len(id) < 3 || id[0] > 2 || id[0] < 2 && id[1] > 39 {
		return nil, fault.New(fault.Conflict, "%s names %q, which is no OID; mend it, and join again", path, name)
	}
	return id, nil
}

// textAttribute is an attribute of a request whose value is text.
func textAttribute(id asn1.ObjectIdentifier, value string) (attribute, error) {
	text, err := asn1.MarshalWithParams(value, "utf8")
	if err != nil {
		return attribute{}, fault.Wrap(fault.Invalid, err, "the value of %s cannot be written into a request", id)
	}
	return attribute{id, []asn1.RawValue{{FullBytes: text}}}, nil
}
