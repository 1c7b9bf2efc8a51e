# frozen_string_literal: true

module Tutti
  # Ruby's guesses at what was meant.
  module Guesses
    # Providers ask for libraries that are not there, and Puppet asks each error for its words, for a log that nobody reads: Ruby would look
    # through all of $LOAD_PATH then for similar names, which took a sixth of a zygote's start. What is raised afterwards has its usual words.
    def self.off
      return yield unless defined?(DidYouMean::RequirePathChecker)

      begin
        DidYouMean.correct_error(LoadError, DidYouMean::NullChecker)
        yield
      ensure
        DidYouMean.correct_error(LoadError, DidYouMean::RequirePathChecker)
      end
    end
  end
end
