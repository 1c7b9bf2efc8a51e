Puppet::Type.type(:story_line).provide(:ruby) do
  def text
    File.exist?(resource[:path]) ? File.read(resource[:path]).chomp : :absent
  end

  def text=(value)
    File.write(resource[:path], "#{value}\n")
  end
end
