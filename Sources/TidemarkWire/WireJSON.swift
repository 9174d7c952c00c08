import CTideJSON
