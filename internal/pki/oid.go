package pki

import (
	"encoding/asn1"
	"maps"
	"slices"
	"strconv"
)

var (
	oidCommonName        = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidSubjectAltName    = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidBasicConstraints  = asn1.ObjectIdentifier{2, 5, 29, 19}
	oidNetscapeComment   = asn1.ObjectIdentifier{2, 16, 840, 1, 113730, 1, 13}
	oidChallengePassword = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}

	// The subtree of Puppet's certificate extensions, and its three branches.
	oidPuppet              = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 34380, 1}
	oidPuppetRegistered    = append(slices.Clip(oidPuppet), 1)
	oidPuppetPrivate       = append(slices.Clip(oidPuppet), 2)
	oidPuppetAuthorization = append(slices.Clip(oidPuppet), 3)
)

// oidAdmin marks a certificate that may do everything: pp_cli_auth.
var oidAdmin = append(slices.Clip(oidPuppetAuthorization), 39)

func under(oid, root asn1.ObjectIdentifier) bool {
	return len(oid) > len(root) && oid[:len(root)].Equal(root)
}

// registeredNames are the short names below branch 1, counted from 1.
var registeredNames = [...]string{
	"pp_uuid", "pp_instance_id", "pp_image_name", "pp_preshared_key", "pp_cost_center", "pp_product", "pp_project",
	"pp_application", "pp_service", "pp_employee", "pp_created_by", "pp_environment", "pp_role", "pp_software_version",
	"pp_department", "pp_cluster", "pp_provisioner", "pp_region", "pp_datacenter", "pp_zone", "pp_network",
	"pp_securitypolicy", "pp_cloudplatform", "pp_apptier", "pp_hostname", "pp_owner",
}

// shortNames maps identifiers of extensions to the names that people know.
type shortNames map[string]string

// newShortNames is the table; more wins over it.
func newShortNames(more map[string]string) shortNames {
	names := shortNames{}
	for i, name := range registeredNames {
		names[oidPuppetRegistered.String()+"."+strconv.Itoa(i+1)] = name
	}
	for n, name := range map[int]string{
		1: "pp_authorization", 2: "pp_auth_auto_renew", 13: "pp_auth_role", 39: "pp_cli_auth",
	} {
		names[oidPuppetAuthorization.String()+"."+strconv.Itoa(n)] = name
	}
	maps.Copy(names, more)
	return names
}
