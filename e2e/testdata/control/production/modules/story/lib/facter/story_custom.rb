Facter.add(:story_custom) do
  setcode { 'a custom fact' }
end
