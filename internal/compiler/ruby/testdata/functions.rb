# frozen_string_literal: true

# Lists the functions of Ruby that are written in C, as they are in a process that compiles:
# "Class#method" or "Module.function", and "hooked" before those that Tutti has taken over.
Puppet::Functions.create_function(:'rows::functions') do
  dispatch(:list) {}

  LIBRARIES = %w[bigdecimal cgi/escape cgi/util coverage csv date dbm delegate digest digest/md5 digest/sha1 digest/sha2 erb etc fcntl fiddle find
                 gdbm io/console io/nonblock io/wait json monitor msgpack nkf objspace open3 openssl ostruct pathname prism pstore psych pty rbtree readline
                 resolv ripper sdbm securerandom set shadow socket stringio strscan syslog tempfile time timeout tmpdir uri yaml zlib].freeze
  NAME = Module.instance_method(:name)
  METHOD = Module.instance_method(:instance_method)
  NAMES = [Module.instance_method(:instance_methods), Module.instance_method(:private_instance_methods)].freeze

  def list
    LIBRARIES.each { |library| load_library(library) }
    found = ObjectSpace.each_object(Module).flat_map { |mod| named(mod) } + functions('ENV.', ENV.singleton_class) + functions('ARGF#', ARGF.class)
    found.uniq.sort
  end

  def load_library(library)
    require library
  rescue LoadError
    nil # not part of this Ruby
  end

  def named(mod)
    name = NAME.bind_call(mod)
    return [] if name.nil? || name.start_with?('Tutti', '#')

    facts = mod.equal?(Hash) ? {}.extend(Tutti::FactReads::Followed).singleton_class : nil
    functions("#{name}#", mod, facts) + functions("#{name}.", mod.singleton_class)
  end

  # Functions of a module's own; those of hashes are hooked where they are hashes of facts.
  def functions(prefix, mod, instead = nil)
    NAMES.flat_map { |list| list.bind_call(mod, false) }.filter_map do |name|
      method = METHOD.bind_call(instead || mod, name)
      path = method.source_location&.first
      next if path.nil? ? !mine?(method, mod, instead) : !path.start_with?('<internal:') && !hooked?(path)

      "#{'hooked ' if path && hooked?(path)}#{prefix}#{name}"
    end
  end

  # Not what a subclass or an object has from elsewhere.
  def mine?(method, mod, instead)
    method.owner.equal?(mod) || !instead.nil? || method.owner.instance_of?(Module)
  end

  def hooked?(path)
    path.start_with?(File.dirname(Tutti::Outside.method(:install).source_location.first))
  end
end
