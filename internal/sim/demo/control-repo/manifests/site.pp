# Every node says its role by a fact; a node without one gets only the base.
node default {
  $role = $facts['demo_role'] ? {
    undef   => 'base',
    default => $facts['demo_role'],
  }
  include "role::${role}"
}
