type Sample::Mode = Enum['fast', 'slow']
