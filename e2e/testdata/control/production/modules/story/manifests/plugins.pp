# What pluginsync brings is used in the same run: a fact, an external fact, a type with its provider.
class story::plugins {
  $dir = $facts['scratch']
  # The order of a fact's members is the node's.
  file { "${dir}/order.txt":
    content => "${facts['story_ordered'].map |$key, $value| { "${key}=${value.keys.join(',')}" }.join(' ')}\n",
  }
  # So is that of its certificate's extensions, in Puppet's language and in Ruby.
  $line = $trusted['extensions'].map |$key, $value| { "${key}=${value}" }.join(' ')
  file { "${dir}/trusted.txt":
    content => "${line}\n${inline_template("<%= @trusted['extensions'].to_json %>")}\n",
  }
  file { "${dir}/facts.txt":
    content => "${facts['story_custom']} and ${facts['story_external']}\n",
  }
  story_line { "${dir}/line.txt":
    text => 'written by a synced provider',
  }
}
