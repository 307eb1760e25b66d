grün = 1
