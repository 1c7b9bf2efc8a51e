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
