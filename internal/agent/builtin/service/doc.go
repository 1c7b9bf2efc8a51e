// Package service is the built-in module service: it starts and stops services, and says how they are.
//
// Who is asked depends on the system:
//
//	systemd   where it runs (/run/systemd/system is there): systemctl
//	init      where /etc/init.d/NAME is there: that script, and update-rc.d or chkconfig for what starts with the system
//	Puppet    anywhere else: `puppet resource service NAME`, with the provider that Puppet chooses
//
// A service that the system does not know aborts an action. Puppet alone does not tell an unknown service from one that is stopped, for
// some of its providers: those count as unknown that look at nothing but scripts of init.
package service
