// Package resource is the built-in modules that look at live resources of the node, and change one, through Puppet's own types and providers:
// resource (find, list, apply), and puppetral (find, search), which are the same under MCollective's names.
//
// They are done by an application of Puppet (tutti_resource.rb), which the agent puts into a directory of its own and hands to the installed Puppet in
// RUBYLIB: so it has Puppet's Ruby, settings, modules and synced types. It reads one request and writes one answer, both JSON.
//
// # Bounds
//
// Two of these programs read at a time; others wait within their time. A list has at most MaxRows resources and MaxBytes bytes; it says how many there are,
// and that it was cut. Values are not shown that are Sensitive, that the type itself hides (a user's password), or whose name says that they are secret.
// Types that cannot be listed, or only at a cost, need the flag expensive: exec and its like, and users and groups where the machine asks a directory service.
//
// # What may be changed
//
// Nothing, until the owner of the node names types in the agent's settings: those that are allowed, or those that are denied, never both. The same can be done
// for the names of one type. A resource that Puppet's last catalog had is refused, unless the settings say otherwise. The types are looked at
// by the agent before anything is started; the names by Puppet, as its type writes them, so that /etc//passwd is /etc/passwd. A catalog's resource whose title
// is not its name (a file with another path) is only known by its title.
//
// # Errors
//
// What Puppet or the owner of the node refuses is told with builtin.Abort. Without Puppet: NotFound; a program that fails or takes too long: Unavailable.
//
// # Concurrency
//
// A module may be used concurrently.
//
// # Sources
//
// puppetral of MCollective, the resource action of Choria's puppet plugin, and `puppet resource` of Puppet 7 and 8.
package resource
