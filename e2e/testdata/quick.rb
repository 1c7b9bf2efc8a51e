# Real agents are started a hundred times, and most of what a start costs is reading the same
# Ruby sources. What Ruby makes of a file of a package is kept here for the next one.
class RubyVM::InstructionSequence
  def self.load_iseq(path)
    return unless path.start_with?('/usr/')
    kept = File.join(ENV.fetch('QUICK'), path.tr('/', '%'))
    begin
      return load_from_binary(File.binread(kept))
    rescue Errno::ENOENT
      made = compile_file(path)
    end
    File.binwrite("#{kept}.#{$$}", made.to_binary)
    File.rename("#{kept}.#{$$}", kept)
    made
  rescue SyntaxError
    nil # Ruby says it better when it reads the file itself
  end
end

# Puppet writes what it loads into $LOADED_FEATURES itself, and Ruby then resolves the links of all that was loaded before, once for each
# file: that is half of what a start costs. Files of the package are loaded by require, which has the same effect.
module OwnFiles
  DIRECTORY = '/usr/lib/ruby/vendor_ruby/puppet/'.freeze

  def load_file(name, env)
    file = get_file(name.to_s, env)
    return super unless file&.start_with?(DIRECTORY) && !$LOADED_FEATURES.include?(file)

    loaded[cleanpath(name).chomp('.rb')] = [file, File.mtime(file)]
    require file
    true
  end
end

TracePoint.new(:end) do |point|
  if defined?(Puppet::Util::Autoload) && point.self == Puppet::Util::Autoload
    Puppet::Util::Autoload.singleton_class.prepend(OwnFiles)
    point.disable
  end
end.enable
