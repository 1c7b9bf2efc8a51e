// Package packages is the built-in module package: it installs, updates and removes packages, and says which are there.
//
// Which package manager is asked depends on what the system has:
//
//	apt      where dpkg knows packages (/var/lib/dpkg/status has some): dpkg-query, apt-get
//	zypper   rpm, zypper
//	dnf      rpm, dnf
//	yum      rpm, yum
//
// Answers have what Puppet's providers have: ensure is the whole version, or absent, or purged where dpkg has nothing of a package, not
// even its settings. A package that is not there is an answer of status, not an error. Installing what is installed, and removing what is not,
// does nothing. After a change the package is looked at again: it did not come about unless it can be seen.
//
// A name goes to the package manager as it is, behind "--". The module's schema refuses names that package managers read as something else:
// patterns, files, and names that end with a minus, which apt-get removes when it is told to install. Of apt, only packages
// are installed that it knows by exactly that name.
package packages
