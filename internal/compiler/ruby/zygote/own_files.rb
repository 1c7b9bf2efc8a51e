# frozen_string_literal: true

require 'puppet/util/autoload'

module Tutti
  # Puppet's types, providers and indirections are loaded once, and never again: by require. Puppet loads them so that they could be
  # loaded again, and writes each into $LOADED_FEATURES itself, whereupon Ruby resolves the links of every file that it loaded before:
  # 800 000 calls of readlink, more than half of a zygote's start. The rest of Puppet must be loaded after this file, since it loads
  # some of these itself.
  module OwnFiles
    DIRECTORY = "#{File.dirname($LOADED_FEATURES.grep(%r{/puppet/util/autoload\.rb\z}).first.to_s).delete_suffix('util')}"

    def load_file(name, env)
      file = get_file(name.to_s, env)
      return super unless file&.start_with?(DIRECTORY) && !$LOADED_FEATURES.include?(file)

      begin
        loaded[cleanpath(name).chomp('.rb')] = [file, File.mtime(file)]
        require file
        true
      rescue StandardError, ScriptError
        super # in Puppet's words
      end
    end
  end

  Puppet::Util::Autoload.singleton_class.prepend(OwnFiles)
end
