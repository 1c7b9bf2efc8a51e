// Package code stores the Puppet code of the environments in versions: it knows the files of each version, and
// the version that an environment uses now.
//
// A version is a manifest: the list of an environment's files, each with its path, mode and digest. The digest
// of the manifest's canonical form names the version, so identical trees are one version, whatever their
// source. Blobs hold the files and the manifest. Rows only say which version an environment has, and since
// when.
//
// A Tree answers questions about one version without touching the files:
// modules on the module path, file server mounts, metadata.
//
// A Library deploys manifests, returns trees (the last ones stay in memory), and tells the blob store which
// blobs are garbage. Build makes a manifest of a directory. Inline makes a compiled catalog static.
//
// # Where trees differ from a classic server
//
// puppet_test.go compares trees with Puppet's own file server. These differences are on purpose: modules from
// the base module path are part of the version, so their files are inlined and fetched by version too; so is a
// module's whole files directory. Owner and group are 0. Directories have a fixed time, so that catalogs do not
// differ by it; files asked for by mtime or ctime have the time of the deploy. Sources of other servers and
// unknown mounts are never inlined. A module with a broken metadata.json is still a module.
//
// # Concurrency
//
// Library, Tree and Bundle may be used concurrently.
//
// # Sources
//
// Puppet 7.23: file_serving, indirector/catalog/compiler, settings/environment_conf.
//
// # Errors
//
// NotFound for an unknown environment, version or path; Invalid for a
// manifest that breaks the rules; Conflict when a manifest names blobs that are
// not stored.
package code
